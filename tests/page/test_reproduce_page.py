# SPDX-License-Identifier: MIT
"""The page of a reproduced report in a browser: no width scrolls sideways, and it loads nothing."""

from __future__ import annotations

import pytest

from checkout.reproduce.page import page_text
from python.pretended_reports import pretend


@pytest.mark.parametrize("number", [1, *(pytest.param(n, marks=pytest.mark.full) for n in (2, 3, 4, 5))])
def test_a_report_fits_screens_and_paper(browser, tmp_path, number):
    path = tmp_path / "report.html"
    path.write_text(page_text(pretend(number, tmp_path)))
    page = browser.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on(
        "request", lambda request: None if request.url == path.as_uri() else complaints.append(request.url)
    )
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    for width in (320, 400, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # A drawing is not cut off either.
        cut = page.evaluate(
            "[...document.querySelectorAll('.panels .plot')].filter(p => p.scrollWidth > p.clientWidth + 1).length"
        )
        assert cut == 0 or width < 400
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 900})
    wide = page.evaluate(
        "[...document.querySelectorAll('table')].filter(t => t.getBoundingClientRect().right > 690)"
        ".map(t => t.textContent.slice(0, 60))"
    )
    assert wide == []
    page.close()
    assert complaints == []
