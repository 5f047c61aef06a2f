# SPDX-License-Identifier: MIT
"""The page's table of cgroups: what each had, with those in it."""

from __future__ import annotations

import re

import schedlab
from schedlab.report.write import write_report

WORKLOAD = """
[workload]
title = "Groups"
question = "What does the page say of them?"
horizon = "400ms"
jitter = "0ms"

[[group]]
name = "a"
weight = 300
quota = "20ms"
[[group]]
name = "b"
cpus = [0]
[[group]]
name = "c"
parent = "b"

[[task]]
name = "x"
group = "a"
phases = [{run = "1s"}]
[[task]]
name = "y"
group = "c"
count = 2
phases = [{run = "100ms"}, {join = "a"}, {run = "1s"}]
[[task]]
name = "z"
phases = [{run = "1s"}]
"""


def cells(text: str) -> list[list[str]]:
    """Of the table below the heading, without its head."""
    table = text[text.index("<h3>Group by group</h3>") :]
    rows = re.findall(r"<tr>(.*?)</tr>", table[: table.index("</table>")], re.DOTALL)
    return [
        [re.sub(r"<.*?>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in rows[1:]
    ]


def test_each_group_has_what_its_tasks_and_those_of_its_groups_had(tmp_path, simulator):
    (tmp_path / "w.toml").write_text(WORKLOAD)
    schedlab.run(tmp_path / "w.toml", "rr", cpus=1, out=tmp_path / "out", seeds=1)
    write_report(tmp_path / "out", tmp_path / "page.html")
    assert cells((tmp_path / "page.html").read_text()) == [
        ["/a", "300", "20 ms of 100 ms", "-", "1", "100 ms", "25.0%"],
        ["/b", "100", "-", "0", "2", "200 ms", "50.0%"],
        ["/b/c", "100", "-", "-", "2", "200 ms", "100.0%"],
    ]


def test_a_workload_without_groups_has_no_table(tmp_path, simulator):
    schedlab.run("mixed", "rr", out=tmp_path / "out", seeds=1)
    write_report(tmp_path / "out", tmp_path / "page.html")
    assert "Group by group" not in (tmp_path / "page.html").read_text()
