"""The taxonomy paper: auto-encoding, contrast and attraction on 3D action recognition from skeletons."""

DATASETS = ("synthetic", "ucla", "ntu")
PIPELINES = ("default", "interpolate", "unscaled", "raw")      # of `synthetic` and `ucla`
NTU_PIPELINES = ("authors", "predict_cluster")
