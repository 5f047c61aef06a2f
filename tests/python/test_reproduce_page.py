# SPDX-License-Identifier: MIT
"""Every report's page: what it promises is on it, whatever the runs have given."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from checkout.reproduce.audit import mean_groups, samples_behind
from checkout.reproduce.charts import axes
from checkout.reproduce.page import page_text
from checkout.reproduce.tables import redrawn_cells
from checkout.reproduce.text import ours_text
from python.pretended_reports import pretend

pytestmark = pytest.mark.full

#: What each report itself shows: its tables, figures, and the sections that stand for them.
SHOWN = {
    1: ["sections 4.1 and 6.1", "section 8"],
    2: ["Figure 1", "Figure 2", "Figure 3", "Figure 4"],
    3: ["Table 1", "Figure 2", "Figure 3"],
    4: [
        "Elapsed Real Time",
        "CPU Usage",
        "Involuntary Context Switches",
        "Voluntary Context Switches",
        "Analysis",
    ],
    5: ["Table 1", "Table 2", "Table 3", "Table 4", "Table 5", "Figure 3", "Figure 4", "Figure 5"],
}


class Read(HTMLParser):
    """Identities, links, and the cells and drawings of each redrawn table."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.labels: list[str] = []
        self.cells: Counter = Counter()
        self.drawings: Counter = Counter()
        self.sections: list[str] = []
        self._inside = ""
        self._is_cell = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        name = found.get("id", "")
        if name:
            self.ids.append(name)
        if tag == "section":
            self.sections.append(name)
            self._inside = ""
        if name.startswith("table-"):
            self._inside = name
        if tag == "a":
            self.links.append(found["href"])
        if tag == "svg" and found.get("role") == "img":
            self.labels.append(found["aria-label"])
            self.drawings[self._inside] += 1
        self._is_cell = tag in ("td", "a")

    def handle_data(self, data):
        if self._is_cell and self._inside:
            self.cells[self._inside, data.replace(",", "")] += 1


@pytest.fixture(scope="module", params=sorted(SHOWN))
def report(request, tmp_path_factory):
    made = pretend(request.param, tmp_path_factory.mktemp("out"))
    with pytest.MonkeyPatch.context() as patch:
        # Hundreds of drawings take seconds; tests/page draws them.
        patch.setattr("schedlab.plots.charts.to_svg", lambda chart, **_: "<svg ></svg>")
        text = page_text(made)
    return made, text, Read(text)


def test_it_opens_with_the_answer_and_ends_with_the_setup(report):
    made, text, found = report
    assert [name for name in found.sections if name != "left-out"] == [
        "answer", "summary", "audit", "tables", "claim", "rows", "setup", "repeat"]  # fmt: skip
    assert text.index("It concludes:") < text.index('id="answer"')
    assert made.experiment.concludes
    answer = text[text.index('id="answer"') : text.index('id="summary"')]
    assert answer.count("<svg ") == 1, "one picture"
    for heading in ("What the author did well", "What to change"):
        assert heading in answer
    assert "{" not in answer, "every number is filled in"


def test_the_matrix_has_numbers_in_each_row(report):
    made, text, _ = report
    summary = text[text.index('id="summary"') : text.index('id="audit"')]
    rows = re.findall(
        r'<tr><th scope="row"><a href="#([\w-]+)">.*?</tr>',
        summary.partition('id="sensitivity"')[0],
        re.DOTALL,
    )
    assert sorted(rows) == sorted(claim.name for claim in made.experiment.claims), "one row per claim"
    assert summary.count('data-label="the report"') == len(made.chosen)
    assert summary.count('data-label="run on"') == len(made.others)
    for each in made.chosen:
        if each.ours:
            assert ours_text(each) in summary


def test_every_table_and_figure_of_the_report_is_redrawn_with_each_number(report):
    made, _, found = report
    where = " ".join(redrawn.where for redrawn in made.experiment.redrawn)
    assert [shown for shown in SHOWN[made.experiment.report] if shown not in where] == []
    n_published = 0
    for number, redrawn in enumerate(made.experiment.redrawn):
        place = f"table-{number}"
        sources = {on for on in redrawn.on} | ({""} if redrawn.published else set())
        assert found.drawings[place] == len(sources), redrawn.title
        if redrawn.kind == "table":
            assert redrawn.rows_are
            assert redrawn.columns_are
            printed = [
                cell["published"].middle for cell in redrawn_cells(made, redrawn) if "published" in cell
            ]
            n_published += len(printed)
            assert all(found.cells[place, f"{value:.6g}"] for value in printed), redrawn.title
    assert n_published > 10


def test_every_row_that_the_report_prints_is_there_with_what_its_audit_found(report):
    made, text, _ = report
    rows = text[text.index('id="rows"') : text.index('id="setup"')]
    assert len(re.findall(r"<tr[ >]", rows)) == sum(len(table.rows) + 1 for table in made.tables.values())
    doubted = {(finding.table, finding.key) for finding in made.audit.wrong if finding.key}
    assert rows.count("<tr class=doubted>") == len(doubted)


def test_links_lead_somewhere_and_names_are_given_once(report):
    made, text, found = report
    assert [name for name, nr in Counter(found.ids).items() if nr > 1] == []
    inner = {link[1:] for link in found.links if link.startswith("#")}
    assert inner <= set(found.ids)
    assert inner >= {claim.name for claim in made.experiment.claims}
    outer = [link for link in found.links if not link.startswith("#")]
    runs = {
        f"{directory}/run.json" for each in made.decisions if each.sample for directory in each.sample.folders
    }
    runs |= {
        f"{directory}/run.json"
        for redrawn in made.experiment.redrawn
        if redrawn.kind == "table"
        for cell in redrawn_cells(made, redrawn)
        if "sample" in cell
        for directory in cell["sample"].folders
    }
    assert {str(made.folder / link) for link in outer} >= runs, "every run behind a figure has a link"
    assert all(link.endswith("/run.json") for link in outer)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', text), "the page loads nothing"


def test_every_drawing_says_its_numbers_in_words(report):
    _, _, found = report
    assert found.labels
    for label in found.labels:
        assert len(re.findall(r"\d", label)) > 3, label


def test_the_rows_behind_a_mean_are_drawn_with_it(tmp_path):
    made = pretend(2, tmp_path)
    groups = mean_groups(made.experiment.folder)
    behind = samples_behind(groups, made.tables, 'means["FIFO", "cpu", 5, "wall_s"]')
    assert behind == pytest.approx([1.51, 0.9, 1.5, 1.51, 0.89])
    shares = samples_behind(groups, made.tables, 'means["FIFO", "cpu", 5, "cpu_share"]')
    assert shares == pytest.approx([0.98, 1.65, 0.99, 0.98, 1.65])
    assert samples_behind(groups, made.tables, "1 + 1") == []
    made = pretend(4, tmp_path)
    groups = mean_groups(made.experiment.folder)
    per_process = samples_behind(groups, made.tables, 'per_process["OTHER", "cpu", 5, "wall_s"]')
    assert per_process[:2] == pytest.approx([9.76 / 5, 12.24 / 5]), "means of means lead back to the rows"
    made = pretend(5, tmp_path)
    groups = mean_groups(made.experiment.folder)
    assert samples_behind(groups, made.tables, 'turnaround["RR", "cpu"]') == []


def test_near_numbers_share_an_axis_and_far_ones_do_not():
    near = axes({"": [1, 2], "sim": [3]}, is_log=False, is_shared=False)
    assert near[""] == near["sim"]
    far = axes({"": [1, 2], "sim": [300]}, is_log=False, is_shared=False)
    assert (far[""].high, far["sim"].high) == (2, 300)
    assert len(set(axes({"": [1, 2], "sim": [300]}, is_log=False, is_shared=True).values())) == 1
    steep = axes({"": [0, 0.5], "sim": [300]}, is_log=True, is_shared=False)
    assert steep[""].is_log
    assert steep[""].low < 0.5 < 300 < steep[""].high
    assert not axes({"": [5, 6]}, is_log=True, is_shared=False)[""].is_log, "a short axis needs no logarithm"
    assert axes({"": [0]}, is_log=True, is_shared=False)[""].high == 1


def test_a_set_that_could_not_be_run_is_said_once_and_has_no_empty_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("schedlab.plots.charts.to_svg", lambda chart, **_: "<svg ></svg>")
    made = pretend(1, tmp_path)
    made.samples.done["sim-1"].problem = "sim cannot be used here: it is not built"
    text = page_text(made)
    tables = text[text.index('id="tables"') : text.index('<section id="claim"')]
    assert text.index("sim cannot be used here") < text.index('id="answer"')
    assert "sim cannot be used here" not in tables
    assert "simulator, 1 CPU<" not in tables
    assert "teaching kernel, 1 CPU<" in tables
