# SPDX-License-Identifier: MIT
"""The documentation becomes a site without a warning, whole in itself, with answers near its front page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from schedlab.cli.group import EXAMPLES
from schedlab.hosts.choose import unavailable_reason
from schedlab.metrics.dictionary import DICTIONARY
from schedlab.policy.find import list_policies
from schedlab.workload.find import workload_names

#: What a newcomer asks: the links to click from the front page, by their text, and words of the answer.
QUESTIONS = {
    "how do I model my web server": (["How do I model my web server?"], "requests per second"),
    "what is wake-up latency": (["The times of a task"], "the next run"),
    "how do I write a per-CPU policy": (["How do I write a per-CPU policy?"], "scx_bpf_task_cpu"),
    "why was mine refused": (["Why was my policy refused?"], "does not compile"),
    "how do I sweep": (["How do I sweep a parameter?"], "schedlab.sweep"),
    "how do I use recorded data": (["How do I use recorded data?"], "schedlab import"),
    "how do I cite it": (["How do I cite schedlab?"], "CITATION.cff"),
    "how do I grade": (["How do I grade sixty submissions?"], "submission"),
    "how do I add a metric": (["How do I add a metric?"], "dictionary.py"),
    "how do I add a host": (["How do I add a host?"], "host.h"),
    "how do I add a workload": (["How do I add a workload?"], "[workload]"),
    "what runs on my laptop": (["Install"], "WSL"),
}
CLICKS_MAX = 2


class Page(HTMLParser):
    """Links, also by their text, what else is fetched, anchors and text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.named: dict[str, str] = {}
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors.add(values.get("id") or "")
        if tag == "a":
            self.links.append(values.get("href") or "")
            self._begin = len(self.text)
        elif tag == "link" and values.get("rel") == "stylesheet":
            self.fetched.append(values["href"])
        elif tag in ("script", "img"):
            self.fetched.append(values.get("src") or "")

    def handle_endtag(self, tag):
        if tag == "a" and self.links:
            self.named.setdefault(self.text[self._begin :].strip(), self.links[-1])

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def site(root, build, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [sys.executable, root / "docs/site/build.py", "--no-pictures", "--out", out],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    warnings = [line for line in done.stderr.splitlines() if not line.startswith("schedlab:")]
    assert warnings == []
    return out


@pytest.fixture(scope="module")
def pages(site) -> dict[str, Page]:
    return {str(path.relative_to(site)): Page(path) for path in sorted(site.rglob("*.html"))}


def target(page: str, link: str) -> str:
    """Name of the page that a link of a page leads to."""
    return str((Path("/") / page).parent.joinpath(link.partition("#")[0]).resolve().relative_to("/"))


def test_each_link_leads_to_a_page_and_a_heading_of_it(site, pages):
    broken = []
    for name, page in pages.items():
        for link in page.links:
            if not link or "://" in link or link.startswith(("mailto:", "#")):
                continue
            to = target(name, link)
            anchor = link.partition("#")[2]
            if not (site / to).is_file() or (anchor and to in pages and anchor not in pages[to].anchors):
                broken.append((name, link))
    assert broken == []


@pytest.mark.skipif(unavailable_reason("wasm") is not None, reason=str(unavailable_reason("wasm")))
def test_the_tutorial_begins_with_the_playground(site, pages):
    assert (site / "playground" / "index.html").stat().st_size > 500_000
    assert target(
        "first-scheduler.html", pages["first-scheduler.html"].named["The playground in a page of its own"]
    ) == ("playground/index.html")
    assert (
        '<iframe class="playground" src="playground/index.html#workload=mixed'
        in (site / "first-scheduler.html").read_text()
    )


def test_a_reader_needs_no_network(site, pages):
    assert {fetched for page in pages.values() for fetched in page.fetched if "://" in fetched} == set()
    styles = " ".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"url\(['\"]?https?:", styles) == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_newcomers_question_is_answered_within_two_clicks(pages, question):
    """The path of `QUESTIONS`, click by click."""
    clicks, words = QUESTIONS[question]
    assert len(clicks) <= CLICKS_MAX
    page = "index.html"
    for text in clicks:
        page = target(page, pages[page].named[text])
    assert words in pages[page].text


def test_the_reference_has_all_that_the_code_has(pages):
    def missing(page: str, words) -> list[str]:
        text = pages[f"reference/{page}.html"].text
        return [word for word in words if word not in text]

    assert missing("command-line", (f"schedlab {name}" for name in EXAMPLES)) == []
    assert missing("metrics", DICTIONARY) == []
    assert missing("policies", list_policies()) == []
    assert missing("workloads", workload_names()) == []
    assert missing("python", ("schedlab.run", "schedlab.sweep", "Result")) == []
    assert missing("binary-formats", ("sl_record_header", "ARRIVE")) == []
    assert missing("rules", ("S1:", "s07_order_of_queues")) == []
    assert missing("errors", ("NotFoundError", "130")) == []


def test_the_recording_of_a_terminal_shows_the_numbers_of_today(root, build, tmp_path):
    """docs/pictures/terminal.svg, which README.md begins with; `./lab docs --write-pictures` makes it anew."""
    code = "import pathlib, sys, pictures; sys.stdout.write(pictures.terminal(pathlib.Path.cwd()))"
    path = f"{root / 'docs/site'}:{root / 'python'}"
    made = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    committed = (root / "docs/pictures/terminal.svg").read_text()
    assert numbers(made.stdout) == numbers(committed)


def numbers(svg: str) -> list[str]:
    """Values of the table in a recording: its words may change."""
    text = " ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg)).replace("&#160;", " ")
    return re.findall(r"[\d.,]+ (?:ms|us|s|%)(?= )", text.partition("what the numbers say")[0])


@pytest.mark.nightly
def test_all_pictures_are_made(root, build, need, tmp_path):
    need("chromium")
    code = "import pathlib, pictures; print(pictures.make(pathlib.Path('made'), pathlib.Path('work').absolute()))"
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{root / 'docs/site'}:{root / 'python'}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert {path.name for path in (tmp_path / "made").iterdir()} == {
        path.name
        for path in (root / "docs/pictures").iterdir()
        # Of published schedulers, which are in no checkout of this project.
        if path.name != "upstream.png"
    }
