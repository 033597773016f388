"""Contrastive learning of images (SCE, JCL, MoCo v2, ReSSL): data, views and encoders."""

from repro.data import manifest

DATASETS = manifest.sets_with("images")  # their manifests, by name
TRUNKS = {"resnet18": 512, "resnet50": 2048}  # and the size of their pooled features
HEADS = ("moco_v2", "sce")
