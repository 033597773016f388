<<<<<<< HEAD
"""CM-ACC: cross-modal active contrastive coding of audio and video."""

MODALITIES = ("video", "audio")  # of grids of characters, x takes the part of video and y that of audio
=======
"""Cross-modal contrastive learning with active sampling of negatives (CM-ACC): data, encoders, training and tables."""

MODALITIES = ("video", "audio")  # of characters, the grid x takes the part of video and y that of audio
>>>>>>> avmodel
