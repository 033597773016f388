"""CM-ACC: cross-modal active contrastive coding of audio and video."""

MODALITIES = ("video", "audio")  # of grids of characters, x takes the part of video and y that of audio
