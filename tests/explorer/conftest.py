"""The explorer as its visitors meet it: a server in this process, a client that has entered, a page in Chromium."""

import contextlib
import os
import re

import pytest

from tests.explorer.visiting import entered, running
from tests.services import program


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """An explorer of a store that does not exist; a module that needs another store has a fixture of this name."""
    with running(f"sqlite:///{tmp_path_factory.mktemp('store') / 'none.db'}") as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    with entered(server) as client:
        yield client


@pytest.fixture(scope="module")
def browser():
    executable = program("chromium", untested="every room of the explorer in a browser")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=30_000)  # a busy machine is not a failure

    flags = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, server):
    """Open an address of the explorer in a new window; other hosts are blocked, and at the end none was asked.

    A script that failed, or broke the content security policy, fails the test.
    """
    with contextlib.ExitStack() as ends:
        foreign, broken = [], []

        def visit(place, **options):
            context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
            ends.callback(context.close)
            base = server.address.partition("/?")[0]
            other = re.compile(rf"^(?!{re.escape(base)}/|data:|blob:)")
            context.route(other, lambda route: (foreign.append(route.request.url), route.abort()))
            page = context.new_page()
            page.set_default_timeout(30_000)
            page.on("pageerror", lambda error: broken.append(str(error)))
            page.on("console", lambda said: broken.append(said.text) if "Security Policy" in said.text else None)
            page.goto(f"{base}{place}{'&' if '?' in place else '?'}{server.address.partition('?')[2]}")
            return page

        yield visit
        assert not foreign
        assert not broken
