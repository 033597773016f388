"""A page in a browser that is watched."""

import contextlib
from typing import NamedTuple
from urllib.parse import urlsplit

PATIENCE = 300_000  # milliseconds, for a machine with other things to do
LOOPBACK = ("127.0.0.1", "localhost")


class Watched(NamedTuple):
    """A page, the errors on its console, and the addresses beyond this machine that it asked for, in vain."""

    page: object
    errors: list[str]
    strangers: list[str]


@contextlib.contextmanager
def watched(browser, **options):
    """A page in a context of its own, with Playwright's `options`; nothing it asks for leaves this machine."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    errors, strangers = [], []

    def elsewhere(url):
        return urlsplit(url).hostname not in LOOPBACK

    def refuse(route):
        strangers.append(route.request.url)
        route.abort()

    context.route(elsewhere, refuse)
    context.route_web_socket(elsewhere, lambda found: strangers.append(found.url))
    page = context.new_page()
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        yield Watched(page, errors, strangers)
    finally:
        context.close()
