"""Contrastive learning of images (SCE, JCL, MoCo v2, ReSSL): data, views and encoders."""
