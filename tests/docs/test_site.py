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
from schedlab.metrics.dictionary import DICTIONARY
from schedlab.policy.find import list_policies
from schedlab.workload.find import workload_names

#: What a newcomer asks, and the page and words that answer.
QUESTIONS = {
    "how do I model my web server": ("how-to/web-server.html", "requests per second"),
    "what is wake-up latency": ("times.html", "the next run"),
    "how do I write a per-CPU policy": ("how-to/per-cpu-policy.html", "scx_bpf_task_cpu"),
    "why was mine refused": ("how-to/refused-policy.html", "does not compile"),
    "how do I sweep": ("how-to/sweep.html", "schedlab.sweep"),
    "how do I use recorded data": ("how-to/recorded-data.html", "schedlab import"),
    "how do I cite it": ("how-to/cite.html", "CITATION.cff"),
    "how do I grade": ("how-to/grade.html", "submission"),
    "how do I add a metric": ("how-to/add-metric.html", "dictionary.py"),
    "how do I add a host": ("how-to/add-host.html", "host.h"),
    "how do I add a workload": ("how-to/add-workload.html", "[workload]"),
    "what runs on my laptop": ("install.html", "WSL"),
}
CLICKS_MAX = 2


class Page(HTMLParser):
    """Links, what else is fetched, anchors and text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors.add(values.get("id") or "")
        if tag == "a":
            self.links.append(values.get("href") or "")
        elif tag == "link" and values.get("rel") == "stylesheet":
            self.fetched.append(values["href"])
        elif tag in ("script", "img"):
            self.fetched.append(values.get("src") or "")

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


def test_a_reader_needs_no_network(site, pages):
    assert {fetched for page in pages.values() for fetched in page.fetched if "://" in fetched} == set()
    styles = " ".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"url\(['\"]?https?:", styles) == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_newcomers_question_is_answered_within_two_clicks(pages, question):
    """Clicks from the front page, without the search and without the bar at the side."""
    answer, words = QUESTIONS[question]
    reached, edge = {"index.html"}, {"index.html"}
    for _ in range(CLICKS_MAX):
        edge = {target(name, link) for name in edge for link in pages[name].links if "://" not in link} & set(
            pages
        )
        reached |= edge
    assert answer in reached
    assert words in pages[answer].text


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
        path.name for path in (root / "docs/pictures").iterdir()
    }
