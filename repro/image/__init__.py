"""Contrastive learning of images (SCE, JCL, MoCo v2, ReSSL): views, encoders, pre-training and tables."""
