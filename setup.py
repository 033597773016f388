"""What a wheel holds: every folder of the package, as it is found, and inside of it folders of the checkout."""

from setuptools import find_namespace_packages, setup

FOUND = find_namespace_packages(include=["repro", "repro.*"], exclude=["*.__pycache__"])
INSIDE = {"repro.data_manifests": "data_manifests", "repro.figures": "figures", "repro.weights": "weights"}

setup(
    packages=[*FOUND, *INSIDE],
    package_dir=INSIDE,
    package_data={
        **{name: ["*.csv", "*.yaml", "*.md", "*.txt"] for name in FOUND},
        "repro.data_manifests": ["*"],
        "repro.figures": ["runs.csv"],
        "repro.weights": ["*/*.safetensors"],
    },
)
