"""Files of data sets: manifests, what is here of them, fetching, archives, labels and digests; no tensors."""
