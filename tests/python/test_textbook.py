# SPDX-License-Identifier: MIT
"""Textbook tables: written, read again, the same."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedlab.errors import SpecError
from schedlab.program.compiler import compile_workload
from schedlab.workload.find import load_workload
from schedlab.workload.spec import parse_workload
from schedlab.workload.textbook import export_textbook, textbook_as_toml

HEAD = '[workload]\ntitle = "T"\nquestion = "Q?"\njitter = "0ms"\ntick = "1ms"\n'


def export_of(phases, more="", head="", tables=""):
    text = f'{HEAD}{head}\n{tables}[[task]]\nname = "a"\n{more}\nphases = [{phases}]\n'
    return export_textbook(parse_workload(text, name="w.toml"))


@pytest.mark.parametrize(
    ("phases", "more", "why"),
    [
        ('{run = "1ms"}, {sleep = "1ms"}', "", "a line of a table is one run and nothing else"),
        ('{work = {kernel = "spin", count = 5}}', "", "a line of a table is one run"),
        ('{run = "exp(1ms)"}', "", "its run is 0 or drawn"),
        ('{run = "0ms"}', "", "its run is 0 or drawn"),
        ('{run = "1ms"}', 'arrival = "exp(1ms)"', "its arrival is drawn, a table has only times"),
        ('{run = "1ms"}', "affinity = [0]", "affinity: there is no such column"),
        ('{run = "1ms"}', 'burst = "2ms"', "burst: a table declares the true length"),
    ],
)
def test_what_a_table_cannot_say_is_refused(phases, more, why):
    with pytest.raises(SpecError) as caught:
        export_of(phases, more)
    assert f"w: task 'a': {why}" in str(caught.value)


def test_all_reasons_at_once():
    with pytest.raises(SpecError, match=r"a horizon: [\s\S]*task 'a': a line of a table"):
        export_of('"yield", {run = "1ms"}', head='horizon = "1s"')
    with pytest.raises(SpecError, match="task 'loop': it is spawned"):
        export_textbook(load_workload("report-5/cpu"))


def test_tasks_of_one_class_have_lines_of_their_own():
    made = export_of(
        '{run = "1500us"}', 'count = 3\narrival = ["0ms", "1ms", "2500us"]\npriority = [1, 2]\ncap = "50%"'
    )
    assert made.text.splitlines() == [
        "name,arrival,burst,priority,cap",
        "a-1,0,1.5ms,1,50",
        "a-2,1,1.5ms,2,50",
        "a-3,2.5ms,1.5ms,1,50",
    ]
    assert made.notes == ("burst: tasks that declare none declare theirs in a table",)


def test_what_is_lost_is_said():
    text = HEAD.replace('jitter = "0ms"', 'jitter = "2ms"').replace('tick = "1ms"', 'tick = "4ms"\ncpus = 2')
    made = export_textbook(parse_workload(f'{text}[[task]]\nname = "a"\nphases = [{{run = "1ms"}}]\n'))
    assert [note.split(":")[0] for note in made.notes] == ["tick", "jitter", "cpus", "burst"]


@pytest.mark.parametrize("name", ["fcfs", "rr", "srtf"])
def test_our_tables_go_there_and_back(name, tmp_path):
    path = tmp_path / "t.csv"
    workload = load_workload(f"textbook/{name}")
    path.write_text(export_textbook(workload).text)
    assert same_work(load_workload(path)) == same_work(workload)


def same_work(workload):
    program = compile_workload(workload, seed=0)
    return program.tasks["name"].tolist(), program.tasks["arrival_ns"].tolist(), program.work_ns().tolist()


times = st.integers(0, 10**13)
rows = st.fixed_dictionaries(
    {"arrival": times, "burst": st.integers(1, 10**13)},
    optional={
        "priority": st.integers(-9, 99),
        "tickets": st.integers(1, 500),
        "deadline": times,
        "nice": st.integers(-20, 19),
        "cap": st.integers(0, 400),
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(rows, min_size=1, max_size=5))
def test_a_table_there_and_back_is_the_same_program(tmp_path, tasks):
    columns = [
        "name",
        "arrival",
        "burst",
        *sorted({key for task in tasks for key in task} - {"arrival", "burst"}),
    ]
    lines = [",".join(columns)]
    for number, task in enumerate(tasks):
        cells = [f"P{number}"]
        for column in columns[1:]:
            value = task.get(column, "0ms" if column == "deadline" else "")
            is_time = column in ("arrival", "burst", "deadline") and isinstance(value, int)
            cells.append(f"{value}ns" if is_time else str(value))
        lines.append(",".join(cells))
    first, second, third = tmp_path / "1" / "t.csv", tmp_path / "2" / "t.csv", tmp_path / "t.toml"
    for path in (first, second):
        path.parent.mkdir(exist_ok=True)
    first.write_text("\n".join(lines) + "\n")
    workload = load_workload(first)
    second.write_text(export_textbook(workload).text)
    assert export_textbook(load_workload(second)).text == second.read_text()
    hashes = {compile_workload(load_workload(path), seed=1).program_hash for path in (first, second)}
    assert len(hashes) == 1
    third.write_text(textbook_as_toml(first).text)
    assert compile_workload(load_workload(third), seed=1).program_hash in hashes
