# SPDX-License-Identifier: MIT
"""A browser for tests of pages."""

from __future__ import annotations

import pytest

#: No sandbox, since tests may run as root; nothing in the background that calls home.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


#: Of a playground: once it has begun, until it has shown what it was asked for.
SETTLED = """async () => {
  while (!schedlab.playground.settled) await new Promise(done => setTimeout(done, 10));
  await schedlab.playground.settled;
}"""


@pytest.fixture(scope="module")
def browser(need):
    path = need("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def playground(browser):
    """Function that opens a playground from its folder; at the end it had no errors and asked for nothing else."""
    contexts, complaints = [], []

    def open_page(folder, address="", **options):
        context = browser.new_context(**options)
        context.set_offline(True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(300_000)
        own = (f"{folder.as_uri()}/index.html", f"{folder.as_uri()}/compiler/", "data:", "blob:")
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith(own) else complaints.append(r.url))
        page.goto(f"{own[0]}#{address}")
        # Not by wait_for_function(), which evaluates text in the page: its policy forbids that.
        page.evaluate(SETTLED)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
