# SPDX-License-Identifier: MIT
"""Templates: what comes from a file is text, and a value that is missing is an error."""

from __future__ import annotations

import re
import subprocess
import sys
from types import SimpleNamespace as Made

import jinja2
import pytest

from python.report_folders import EVIL, Page
from schedlab.grade.pages import class_page, student_page
from schedlab.html import environment, figure, prose, render

TEST = Made(name=EVIL, about=EVIL, points=1.0)
OUTCOME = Made(
    test=TEST,
    points=0.5,
    parts=[Made(workload=EVIL, text=EVIL, is_hidden=False)],
    is_hidden=False,
    is_full=False,
)
EXAMPLE = Made(test=EVIL, text=EVIL, toml=EVIL, svg="<svg></svg>", seed=1, n_cpus=1)
REPORT = Made(
    student=EVIL, points=0.5, error=EVIL, outcomes=[OUTCOME], facts=[], examples=[EXAMPLE], n_lines=3
)
ASSIGNMENT = Made(title=EVIL, points=1.0, tests=[TEST])


@pytest.mark.parametrize(
    "text",
    [student_page(ASSIGNMENT, REPORT), class_page(ASSIGNMENT, [REPORT, REPORT], {EVIL: []})],
    ids=["student", "class"],
)
def test_names_on_a_page_of_grading_are_text(text):
    page = Page(text)
    assert page.scripts == []
    assert sum(EVIL in each for each in page.texts) >= 3
    assert not any(
        EVIL in str(value) and tag != "a" for tag, found in page.elements for value in found.values()
    )


def test_a_figures_words_are_text_and_its_chart_is_not():
    text = figure('<svg id="a" x="url(#a)"></svg>', key="k", title='" onload="x', text=EVIL, is_wide=True)
    assert Page(text).elements[-1] == (
        "svg",
        {"role": "img", "aria-label": '" onload="x', "id": "k-a", "x": "url(#k-a)"},
    )
    assert Page(text).scripts == []


def test_prose_is_text_with_code_and_options():
    assert prose("`a<b` takes 5 ms with --scale 2") == (
        '<code>a&lt;b</code> takes 5\u00a0ms with <span class="option">--scale 2</span>'
    )


def test_a_value_that_is_missing_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="'svg' is undefined"):
        render("figure.html", title="", text="", is_wide=False)


def test_no_template_turns_escaping_off():
    names = environment().list_templates()
    assert {"report.html", "playground.html", "student.html", "class.html"} <= set(names)
    for name in names:
        source = environment().loader.get_source(environment(), name)[0]
        assert not re.search(r"\|\s*safe\b|autoescape", source), name


def test_the_command_line_starts_without_templates():
    code = "import sys, schedlab.cli.app, schedlab.cli.report, schedlab.cli.grade; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
