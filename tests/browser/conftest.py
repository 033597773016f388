"""A browser for the tests of this folder: Debian's Chromium, driven by Playwright; they are skipped without either."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="no browser tests: Playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser tests: none of {', '.join(NAMES)} is here; apt-get install chromium")
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # whom Chromium refuses a sandbox
    with api.sync_playwright() as playwright:
        arguments = ["--disable-gpu", *(["--no-sandbox"] if root else [])]  # one emulated by the processor is slow
        launched = playwright.chromium.launch(executable_path=path, args=arguments)
        yield launched
        launched.close()
