"""The taxonomy paper: auto-encoding, contrast and attraction on 3D action recognition from skeletons."""

from repro.data import manifest

DATASETS = manifest.sets_with("skeletons")                     # their manifests, by name
PIPELINES = ("default", "interpolate", "unscaled", "raw")      # of all data sets but NTU RGB+D
NTU_PIPELINES = ("authors", "predict_cluster")
