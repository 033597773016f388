"""A package, so that none of this name that a library has installed is found in its place."""
