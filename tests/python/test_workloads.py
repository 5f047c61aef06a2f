# SPDX-License-Identifier: MIT
"""The workloads that come with schedlab: pinned bytes, and what the reports say."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from schedlab.calibration import DEFAULT_CALIBRATION, Calibration
from schedlab.errors import UsageError
from schedlab.program import layout
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, Stop
from schedlab.workload.distributions import PARAMETERS
from schedlab.workload.find import list_workloads, load_workload
from schedlab.workload.phases import ATTRIBUTES, VERBS
from schedlab.workload.spec import parse_workload
from schedlab.workload.tables import TaskTable, WorkloadTable
from sim.simulated import simulated

GOLDEN = Path(__file__).with_name("golden_programs.txt")
SEEDS = (0, 1)
NAMES = [info.name for info in list_workloads()]
TICK_NS = 10_000_000


def program_of(name, seed=0):
    return compile_workload(load_workload(name), seed=seed)


def golden_lines():
    return [f"{name} {seed} {program_of(name, seed).program_hash}" for name in NAMES for seed in SEEDS]


def test_program_hashes_are_pinned():
    """A changed line means that published results no longer compare: say why.

    After an intended change: `python tests/python/test_workloads.py --bless`.
    """
    assert golden_lines() == GOLDEN.read_text().splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_each_workload_has_jitter_or_says_why_not(name):
    """Seeds must differ, or repeated runs of a deterministic host are one run."""
    workload = load_workload(name)
    one, two = program_of(name, 1), program_of(name, 2)
    if name.startswith("textbook/"):
        assert workload.jitter_ns == 0
        assert one.ops.tobytes() == two.ops.tobytes()
    else:
        assert one.tasks["arrival_ns"].tolist() != two.tasks["arrival_ns"].tolist()
    assert program_of(name, 1).data == one.data


@pytest.mark.parametrize("name", NAMES)
def test_every_task_ends_by_itself_or_the_workload_says_when(name):
    assert (program_of(name).work_ns() >= 0).all() or load_workload(name).horizon_ns


# ---- schedules worked out by hand --------------------------------------------------


def simulate(tasks, pick, slice_ms):
    """Schedule (name, arrival, burst) in steps of 1 ms; return when each ends.

    `pick` chooses from the queue; a task that used its slice goes to the end,
    behind those that have arrived by then.
    """
    left = {name: burst for name, _, burst in tasks}
    finish, queue, running, used, now = {}, [], None, 0, 0
    while len(finish) < len(tasks):
        queue += [name for name, arrival, _ in tasks if arrival == now]
        if running and (used == slice_ms or pick is shortest):
            queue.append(running)
            running = None
        if not running and queue:
            running = pick(queue, left)
            queue.remove(running)
            used = 0
        now += 1
        if running:
            left[running] -= 1
            used += 1
            if not left[running]:
                finish[running], running = now, None
    return finish


def first(queue, left):
    return queue[0]


def shortest(queue, left):
    return min(queue, key=lambda name: left[name])


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("textbook/")])
def test_expected_schedules(name):
    workload = load_workload(name)
    program = program_of(name)
    columns = zip(
        program.tasks["name"].tolist(),
        (program.tasks["arrival_ns"] // 1_000_000).tolist(),
        (program.work_ns() // 1_000_000).tolist(),
        strict=True,
    )
    tasks = list(columns)
    assert workload.expected
    for expected in workload.expected:
        pick = shortest if expected.policy == "srtf" else first
        slice_ms = expected.settings.get("slice_ns", 0) // 1_000_000
        assert slice_ms or expected.policy in ("fifo", "srtf")
        found = simulate(tasks, pick, slice_ms or -1)
        assert {task: end * 1_000_000 for task, end in found.items()} == expected.finish_ns


def known_schedules():
    for name in NAMES:
        for expected in load_workload(name).expected:
            yield pytest.param(name, expected, id=f"{name}-{expected.policy}")


@pytest.mark.full
@pytest.mark.parametrize(("name", "expected"), list(known_schedules()))
def test_simulator_keeps_expected_schedules(name, expected, simulator, root, tmp_path):
    policy = root / "policies" / f"{expected.policy}.bpf.c"
    if not policy.is_file():
        pytest.skip(f"there is no policy {expected.policy} yet")
    made = simulated(simulator, tmp_path, load_workload(name), policy, knobs=expected.settings)
    events = made.records.events
    ends = events[(events["kind"] == Kind.STOP) & (events["flags"] == Stop.EXITED)]
    found = {str(made.program.tasks["name"][end["task"] - 1]): int(end["t_ns"]) for end in ends}
    assert found == expected.finish_ns


# ---- what the reports say -------------------------------------------------------------


def ticks_of(name):
    return program_of(name).work_ns().sum() / TICK_NS


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("report-1/cpu-heavy", 87),
        ("report-1/switch", 70.5),
        ("report-1/creation", 17),
        ("report-1/short", 70),
        ("report-1/starvation", 43.5),
    ],
)
def test_report_1_round_robin_baseline(name, published):
    """Under the default calibration the work fills the published ticks."""
    assert ticks_of(name) == pytest.approx(published, rel=0.03)


def test_report_1_io_bound_has_both_readings():
    """Forks and the last sleeps of both batches: 52.5 ticks; half of it: 25."""
    text, code = program_of("report-1/io-bound"), program_of("report-1/io-bound:processes=50")
    assert (text.n_tasks, code.n_tasks) == (101, 51)
    assert text.work_ns().sum() / TICK_NS + 2 * 10 == pytest.approx(52.5, rel=0.05)
    assert code.work_ns().sum() / TICK_NS + 10 == pytest.approx(25, rel=0.1)
    assert text.tasks["priority"].tolist() == [5] + [5, 0] * 50


def test_report_1_mixed_cannot_take_fifty_ticks():
    assert ticks_of("report-1/mixed") == pytest.approx(109, rel=0.01)


def test_report_1_priorities():
    tasks = program_of("report-1/starvation").tasks
    assert tasks["priority"].tolist() == [0] + [5] * 5
    tasks = program_of("report-1/mixed").tasks
    assert tasks["priority"].tolist() == [0] * 5 + [10] * 5


# Report 2's table, FIFO: processes, CPU-seconds as user (CPU-bound), voluntary switches (I/O).
@pytest.mark.parametrize(("processes", "user_s", "switches"), [(70, 20.262, 20_693), (300, 86.948, 91_798)])
def test_report_2_has_the_published_size(processes, user_s, switches):
    cpu, io, mixed = (program_of(f"report-2/{name}:processes={processes}") for name in ("cpu", "io", "mixed"))
    assert cpu.n_tasks == io.n_tasks == mixed.n_tasks == processes + 1
    forks_s = processes * 0.5e-3
    assert cpu.work_ns().sum() / 1e9 - forks_s == pytest.approx(user_s, rel=0.01)
    assert mixed.work_ns().sum() == cpu.work_ns().sum()  # the same calculation, as the text says
    assert device_calls(io) == pytest.approx(switches, rel=0.03)
    assert device_calls(mixed) == 0


def test_report_4_has_the_published_size():
    pi, rw, mixed = (program_of(f"report-4/{name}") for name in ("pi", "rw", "mixed"))
    work_s = [program.work_ns()[1] / 1e9 for program in (pi, rw, mixed)]
    assert work_s == pytest.approx([3.88, 0.070, 38.8 + 0.7])
    # 2,085 and 2,152 voluntary switches for each of 5 processes under FIFO.
    assert device_calls(rw) / 5 == pytest.approx(2_085, rel=0.05)
    assert device_calls(mixed) == 10 * device_calls(rw)
    as_switches_say = program_of("report-4/mixed:file=102400B")
    assert device_calls(as_switches_say) / 5 == pytest.approx(2_152, rel=0.1)


def device_calls(program):
    """Calls that wait for the device, by all tasks, loops multiplied out."""
    total = 0
    for row in program.task_rows:
        times = [1]
        for op in program.ops[row["op_first"] : row["op_first"] + row["nr_ops"]]:
            verb = layout.VERBS[op["verb"]]
            if verb == "loop":
                times.append(times[-1] * int(op["b"]))
            elif verb == "end":
                times.pop()
            elif verb in ("read", "write") and op["flags"] & layout.OP_SYNC:
                total += times[-1] * -(-int(op["b"]) // int(op["a"]))
    return total


SIZES, CREDITS = (32, 64, 128, 256), (25, 50, 75, 100)


def test_report_3_is_eight_of_each_in_its_order():
    program = program_of("report-3/matrix")
    expected = [f"m{size}-c{credits}" for size in SIZES for credits in CREDITS for _ in range(8)]
    assert played(program, 0) == expected
    names, work_ns = program.tasks["name"].tolist(), program.work_ns()
    for size in SIZES:
        found = {int(work_ns[i]) for i, name in enumerate(names) if name.startswith(f"m{size}-")}
        assert found == {DEFAULT_CALIBRATION.work_ns("matmul", size**3)}
    published_ms = {256: 199.9, 128: 22.3, 64: 2.84, 32: 0.4}
    for size, ms in published_ms.items():
        assert DEFAULT_CALIBRATION.work_ns("matmul", size**3) / 1e6 == pytest.approx(ms, rel=0.13)


@pytest.mark.parametrize("order", ["report", "crossed"])
@pytest.mark.parametrize("loads", ["equal", "unequal"])
def test_report_3_orders(order, loads):
    """What each order promises: the mean place of every number of credits, the load of CPUs."""
    program = program_of(f"report-3/matrix:order={order},loads={loads}")
    made = played(program, 0)
    assert sorted(made) == sorted(played(program_of("report-3/matrix"), 0))
    kinds = [tuple(int(part[1:]) for part in name.split("-")) for name in made]
    places = {
        credits: np.mean([i for i, kind in enumerate(kinds) if kind[1] == credits]) for credits in CREDITS
    }
    by_kind = {kind: np.mean([i for i, other in enumerate(kinds) if other == kind]) for kind in set(kinds)}
    if order == "crossed":
        assert set(places.values()) == {63.5}
        assert loads == "unequal" or set(by_kind.values()) == {63.5}
        assert len({by_kind[256, credits] for credits in CREDITS}) == 1
    else:
        assert places[25] < places[50] < places[75] < places[100]
    # Dealt out in turn to four CPUs:
    work = [sum(size**3 for size, _ in kinds[cpu::4]) for cpu in range(4)]
    assert (max(work) == min(work)) == (loads == "equal")
    assert loads == "equal" or max(work) > 0.87 * sum(work)


@pytest.mark.parametrize(
    ("yields", "of_size"), [("never", (0, 0, 0, 0)), ("64", (0, 0, 1, 3)), ("8", (3, 7, 15, 31))]
)
def test_report_3_yields_between_blocks_of_rows(yields, of_size):
    program = program_of(f"report-3/matrix:yields={yields}")
    plain = program_of("report-3/matrix")
    # A piece is rounded down to a nanosecond, no more.
    assert np.abs(program.work_ns().astype(int) - plain.work_ns().astype(int)).max() < 32
    for size, expected in zip(SIZES, of_size, strict=True):
        task = program.tasks["name"].tolist().index(f"m{size}-c75")
        row = program.task_rows[task]
        ops = program.ops[row["op_first"] : row["op_first"] + row["nr_ops"]]
        verbs = [layout.VERBS[verb] for verb in ops["verb"]]
        rounds = int(ops["b"][verbs.index("loop")]) if "loop" in verbs else 1
        assert verbs.count("yield") * rounds == expected


def test_report_3_credits_grow_with_the_work():
    tasks = program_of("report-3/matrix:growth=8").tasks
    for size in SIZES:
        mine = np.char.startswith(tasks["name"], f"m{size}-")
        factor = (size // 32) ** 3
        assert sorted(set(tasks["credits"][mine].tolist())) == [credits * factor for credits in CREDITS]


@pytest.mark.parametrize("name", ["cpu", "io", "mixed"])
def test_report_5_forks(name):
    program = program_of(f"report-5/{name}")
    kinds, counts = np.unique(program.tasks["name"], return_counts=True)
    found = dict(zip(kinds.tolist(), counts.tolist(), strict=True))
    expected = {"cpu": {"loop": 40}, "io": {"file": 40}, "mixed": {"loop": 34, "file": 16}}
    assert found == {"parent": 1, **expected[name]}


@pytest.mark.parametrize(("name", "per_million_cycles"), [("cpu", 0.8821), ("io", 0.9212)])
def test_report_5_round_robin_throughput(name, per_million_cycles):
    """Forty children and their forks fill three CPUs for the published time."""
    published_ticks = 40 / per_million_cycles  # a tick is a million cycles
    assert ticks_of(f"report-5/{name}") / 3 == pytest.approx(published_ticks, rel=0.03)


def test_report_5_mixed_forks_two_loops_to_one_file_and_sleeps_every_five():
    program = program_of("report-5/mixed")
    events = played(program, 0)
    forks = [name for name in events if name != "sleep"]
    assert forks == ["loop", "loop", "file"] * 16 + ["loop", "loop"]
    sleeps = [i for i, name in enumerate(events) if name == "sleep"]
    assert [i - n for n, i in enumerate(sleeps)] == [5, 10, 15, 20, 25, 30, 35, 40, 45]


def played(program, task):
    """Names of the children that a task spawns, in order, and its sleeps."""
    row = program.task_rows[task]
    ops = program.ops[row["op_first"] : row["op_first"] + row["nr_ops"]]
    slots, pc, events = {}, 0, []
    while layout.VERBS[ops[pc]["verb"]] != "exit":
        verb, slot = layout.VERBS[ops[pc]["verb"]], int(ops[pc]["slot"])
        if verb == "loop":
            slots[slot] = int(ops[pc]["b"])
        elif verb == "end":
            slots[slot] -= 1
            pc = int(ops[pc]["a"]) if slots[slot] else pc
        elif verb == "spawn":
            child = int(ops[pc]["a"]) + slots.setdefault(slot, 0)
            slots[slot] += 1
            events.append(str(program.tasks["name"][child]))
        elif verb == "sleep":
            events.append("sleep")
        pc += 1
    return events


def test_poisson_is_what_its_params_say():
    program = program_of("poisson:count=20000,rho=0.5,mean=2ms", 3)
    gaps = np.diff(program.tasks["arrival_ns"].astype(np.int64))
    work = program.work_ns()
    assert work.mean() == pytest.approx(2e6, rel=0.03)
    assert gaps.mean() == pytest.approx(4e6, rel=0.03)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)  # exponential
    assert abs(np.corrcoef(gaps, work[1:])[0, 1]) < 0.03
    assert (program.tasks["burst_ns"] == work).all()


def test_mixed_asks_for_shares_in_every_currency():
    tasks = program_of("mixed").tasks
    hogs = np.char.startswith(tasks["name"], "hog")
    for column in ("weight", "tickets", "credits"):
        assert tasks[column][hogs].tolist() == [400, 200, 100]
    assert tasks["priority"][hogs].tolist() == [4, 5, 6]


# ---- calibration --------------------------------------------------------------------------


def test_calibration_is_outside_the_program():
    program = program_of("report-1/cpu-heavy")
    slow = Calibration(spin_ps=8_700)
    assert (program.work_ns(slow) == 2 * program.work_ns()).all()
    assert program.program_hash == program_of("report-1/cpu-heavy").program_hash


def test_calibration_refuses_nonsense():
    with pytest.raises(UsageError, match="spin_ps must be a whole number .* .got 0"):
        Calibration(spin_ps=0)
    with pytest.raises(UsageError, match=r"unknown kernel 'spn' \(did you mean 'spin'\?\)"):
        DEFAULT_CALIBRATION.work_ns("spn", 1)


def test_calibration_is_that_of_the_reports():
    # Report 1: 87 ticks for 10 x 20 million; report 3: 199.9 ms for 256**3;
    # report 4: 77.595 s for 20 x 100 million.
    assert DEFAULT_CALIBRATION.work_ns("spin", 200_000_000) == 870_000_000
    assert DEFAULT_CALIBRATION.work_ns("matmul", 256**3) == pytest.approx(199.9e6, rel=0.002)
    assert DEFAULT_CALIBRATION.work_ns("pi", 2_000_000_000) == pytest.approx(77.595e9, rel=0.001)


# ---- docs/ --------------------------------------------------------------------------------


def test_examples_of_the_reference_work(root):
    text = (root / "docs" / "formats.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    whole = [block for block in blocks if block.startswith("[workload]")]
    parts = [block for block in blocks if not block.startswith("[workload]")]
    assert whole and parts
    for block in whole:
        compile_workload(parse_workload(block, name="example.toml"), seed=1)
    head = '[workload]\ntitle = "T"\nquestion = "Q?"\n[[task]]\nname = "a"\n'
    for block in parts:
        parse_workload(f'{head}phases = [{{run = "exp({{length / rho}})"}}]\n{block}')


def test_reference_names_every_word(root):
    """A verb, attribute, key or distribution that the page does not name is a gap."""
    text = (root / "docs" / "formats.md").read_text()
    words = [*VERBS, *ATTRIBUTES, *PARAMETERS, *WorkloadTable.model_fields, *TaskTable.model_fields]
    assert [word for word in words if not re.search(rf"[`{{\" ]{word}[`\" ,=(]", text)] == []


def test_page_of_workloads_names_every_workload(root):
    text = (root / "docs" / "workloads.md").read_text()
    for name in NAMES:
        folder, _, leaf = name.rpartition("/")
        assert name in text or re.search(rf"{folder}/\w+, .*\b{leaf}\b", text), name


if __name__ == "__main__" and "--bless" in sys.argv:
    GOLDEN.write_text("\n".join(golden_lines()) + "\n")
