"""The taxonomy paper: auto-encoding, contrast and attraction on 3D action recognition from skeletons."""
