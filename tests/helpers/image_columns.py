"""The columns of the image tables."""

from repro.image import table_layouts

HEAD = ["ours", "std", "n_seeds", "published", "difference", "preset", "dataset"]
TAIL = [*HEAD, *table_layouts.MEASURES]
LAYOUTS = {
    "image_methods": ["method", *TAIL],
    "temperature_grid": ["method", "temperature", "key_temperature", *TAIL],
    "positive_keys": ["varied", "method", "keys", "strength", "temperature", "encoder_forwards", *TAIL],
    "similarity_variance": ["method", "keys", *TAIL],
}
