"""Cross-modal contrastive learning with active sampling of negatives (CM-ACC): data, encoders, training and tables."""

MODALITIES = ("video", "audio")  # of characters, the grid x takes the part of video and y that of audio
CHARACTERS = ("multidigits", "multiomniglot")  # data sets of grids
FREQUENCIES = ("balanced", "zipf")
VIEWS = ("affine", "characters")
WIDTHS = 32  # a width of an encoder is a multiple of this, so that every layer has a whole number of channels
