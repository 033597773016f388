"""What the four papers share: objectives, the dictionary of keys and the momentum encoder, as pure torch."""
