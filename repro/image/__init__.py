"""SCE, JCL, MoCo v2 and ReSSL: contrast, and relations between images, on images."""
