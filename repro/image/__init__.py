"""SCE, JCL, MoCo v2 and ReSSL: contrastive and relational learning of image features."""
