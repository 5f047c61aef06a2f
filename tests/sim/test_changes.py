# SPDX-License-Identifier: MIT
"""Tasks that change others: their CPUs and attributes, wherever they are."""

from __future__ import annotations

import pytest

import schedlab
from schedlab.errors import UsageError
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, read_records
from schedlab.workload.spec import parse_workload

HEAD = '[workload]\ntitle = "T"\nquestion = "Q?"\njitter = "0ms"\ntick = "1ms"\ncpus = 3\nhorizon = "100ms"\n'
MS = 1_000_000
#: Three tasks on two CPUs of three: when their CPUs are changed, two run, and one is queued.
HOGS = '[[task]]\nname = "a"\ncount = 3\naffinity = [0, 1]\nphases = [{loop = "forever", do = [{run = "1ms"}]}]\n'


def controller(*phases: str) -> str:
    return f'[[task]]\nname = "b"\naffinity = [2]\nphases = [{", ".join(phases)}]\n'


def runs_of(folder, text: str, policy: str = "rr", **options) -> list[tuple[float, int, int]]:
    """When each burst begins in ms, its pid and its CPU; the records have passed all checks."""
    (folder / "w.toml").write_text(HEAD + text)
    result = schedlab.run(str(folder / "w.toml"), policy, out=folder / "out", seeds=[1], **options)
    run = result.runs.row(0, named=True)
    assert run["error"] is None, run["error"]
    events = read_records(f"{run['directory']}/records.slr").events
    bursts = events[events["kind"] == Kind.RUN]
    return [(int(each["t_ns"]) / MS, int(each["task"]), int(each["cpu"])) for each in bursts]


@pytest.mark.parametrize("policy", ["rr", "cfs", "mlfq", "lottery", "o1"])
def test_tasks_go_where_another_one_sends_them(policy, tmp_path, simulator):
    """Those that run at that moment, those that wait, and back."""
    there = '{change = {task = "a", affinity = [1]}}'
    back = '{change = {task = "a", affinity = [0, 1]}}'
    runs = runs_of(tmp_path, HOGS + controller('{sleep = "13ms"}', there, '{sleep = "40ms"}', back), policy)
    hogs = [(at, cpu) for at, pid, cpu in runs if pid <= 3]
    parts = [{cpu for at, cpu in hogs if begin <= at < end} for begin, end in ((0, 13), (13, 53), (53, 100))]
    assert parts == [{0, 1}, {1}, {0, 1}]


def test_a_task_moves_itself_and_a_task_to_come(tmp_path, simulator):
    late = '[[task]]\nname = "c"\narrival = "20ms"\nphases = [{loop = 3, do = [{run = "2ms"}, {sleep = "1ms"}]}]\n'
    runs = runs_of(
        tmp_path,
        controller("{change = {affinity = [1]}}", '{run = "2ms"}', "{change = {affinity = [0]}}", '{run = "2ms"}',
                   '{change = {task = "c", affinity = [1]}}') + late,
    )  # fmt: skip
    own = [(at, cpu) for at, pid, cpu in runs if pid == 1]
    assert own[-1][1] == 0 and 1 in {cpu for _, cpu in own[1:-1]}
    assert {cpu for _, pid, cpu in runs if pid == 2} == {1}


def test_a_weight_is_changed_from_another_cpu(tmp_path, simulator):
    """Of two on one CPU: 1 to 1, and from 50 ms on 1 to 9."""
    hog = HOGS.replace("count = 3\naffinity = [0, 1]", "affinity = [0]")
    other = controller('{sleep = "50ms"}', '{change = {task = "a", weight = 900}}')
    runs = runs_of(tmp_path, hog.replace('"a"', '"first"') + hog + other, "cfs")
    bursts = [(at, pid) for at, pid, cpu in runs if cpu == 0]
    ends = [at for at, _ in bursts[1:]] + [100.0]
    had = {}
    for (at, pid), end in zip(bursts, ends, strict=True):
        had[pid, at >= 50] = had.get((pid, at >= 50), 0) + end - at
    assert had[2, False] < 2 * had[1, False] and had[2, True] > 3 * had.get((1, True), 0)


def test_a_program_says_who_changes_what(simulator):
    text = HEAD + HOGS + controller("{change = {nice = 5}}", '{change = {task = "a", affinity = [1]}}')
    program = compile_workload(parse_workload(text, name="w.toml"), seed=1)
    listed = program.describe()
    assert "weight of itself = 33" in listed
    assert [f"affinity of pid {pid} = [1]" in listed for pid in (1, 2, 3, 4)] == [True] * 3 + [False]
    assert (
        program.has_mask_changed.tolist() == [True, True, True, False] and program.header["nr_cpus_min"] == 3
    )


def test_hosts_that_cannot_change_others_refuse_them(tmp_path):
    (tmp_path / "w.toml").write_text(HEAD + HOGS + controller('{change = {task = "a", affinity = [1]}}'))
    with pytest.raises(UsageError, match="'w' changes tasks from outside, which --host uthreads lacks"):
        schedlab.run(str(tmp_path / "w.toml"), "rr", host="uthreads", out=tmp_path / "out")
