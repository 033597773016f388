"""Recipes that differ from another in one field, whatever it is."""


def others(recipe, name):
    """Recipes with another value in a field, if there is one that they may have there."""
    value, allowed = getattr(recipe, name), recipe.__dataclass_fields__[name].metadata["allowed"]
    if type(value) is bool:
        candidates = [not value]
    elif allowed:
        candidates = [other for other in allowed if other != value]
    elif type(value) in (int, float):
        candidates = [value + 1, value / 2] if type(value) is float else [value + 1, 2 * value, value // 2]
    else:
        candidates = []
    for candidate in candidates:
        try:
            yield recipe.replace(**{name: candidate})
        except ValueError:  # impossible beside the other fields
            continue
