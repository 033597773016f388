"""CM-ACC, cross-modal active contrastive coding of audio and video: data, encoders, training and tables."""

MODALITIES = ("video", "audio")  # of characters, the grid x takes the part of video and y that of audio
