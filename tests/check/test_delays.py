# SPDX-License-Identifier: MIT
"""Delays are put before the instructions of a policy that are meant, and nothing else is changed."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from schedlab.check.calls import calls_of, read_calls
from schedlab.check.on_linux import points_of, repeated, tries_of
from schedlab.check.save import save
from schedlab.paths import include_folder
from schedlab.policy.delays import Point, compile_with_delays, put_in
from schedlab.policy.find import load_policy
from schedlab.policy.invariants import TESTED, for_linux
from schedlab.workload.spec import parse_workload

from .test_check import BUGS, task_of
from .test_races import WORLD

HEAD = """#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
u64 nr, other;
u32 small;
u8 flag;
struct task_struct *kept;
#define COUNT(x)	do { (x)++; } while (0)
static inline void helper(void)
{
	other += 5;
}
void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 local[4] = { enq_flags };
"""
TAIL = """
	scx_bpf_dsq_insert(p, local[enq_flags & 3], SCX_SLICE_DFL, enq_flags);
}
void BPF_STRUCT_OPS(t_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(1, 0);
}
SCX_OPS_DEFINE(t_ops, .enqueue = (void *)t_enqueue, .dispatch = (void *)t_dispatch, .name = "t");
#include <scx/delays.bpf.h>
"""
LINE = HEAD.count("\n") + 1  #: The first one of what a test puts between.
FLAGS = ("-target", "bpf", "-mcpu=v3", "-std=gnu11", "-ffreestanding", "-O2", "-g")


def compiled(folder, body: str, clang: str) -> str:
    """The text of LLVM of a policy with this in its enqueue."""
    (folder / "t.bpf.c").write_text(HEAD + body + TAIL)
    return subprocess.run(
        [clang, *FLAGS, f"-I{include_folder()}", "-S", "-emit-llvm", "t.bpf.c", "-o", "-"],
        cwd=folder, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip


def after_delays(text: str) -> list[str]:
    """Which instruction comes after each delay."""
    lines = [line for line in text.splitlines() if not line.startswith("    #dbg")]
    return [
        lines[at + 1].strip()
        for at, line in enumerate(lines)
        if re.search(r"^  call void @sl_delay(_write\d+)?\(", line)
    ]


@pytest.mark.parametrize(
    ("body", "line", "does", "wanted"),
    [
        # Between the read and the write of one statement.
        ("\tnr++;", 0, "write", [r"store i64 %\d+, ptr @nr"]),
        ("\tnr++;", 0, "read", [r"%\d+ = load i64, ptr @nr"]),
        ("\tCOUNT(nr);", 0, "write", [r"store i64 %\d+, ptr @nr"]),
        # Without braces, on lines of their own; the condition is not delayed.
        ("\tif (enq_flags)\n\t\tnr = 7;\n\tother = 8;", 1, "write", [r"store i64 7, ptr @nr"]),
        ("\tif (enq_flags)\n\t\tnr = 7;\n\telse\n\t\thelper();", 1, "write", [r"store i64 7, ptr @nr"]),
        # Of two branches that both write the compiler has made one write, which is of neither line.
        ("\tif (enq_flags)\n\t\tnr = 7;\n\telse\n\t\tother = 7;", 1, "write", []),
        # Two statements of one line; a statement of several lines.
        ("\tnr = 1; small = 2;", 0, "write", [r"store i64 1, ptr @nr", r"store i32 2, ptr @small"]),
        ("\tnr =\n\t\tother\n\t\t+ p->pid;", 1, "read", [r"%\d+ = load i64, ptr @other"]),
        ("\tWRITE_ONCE(flag, READ_ONCE(flag) + 1);", 0, "write", [r"store volatile i8 .*, ptr @flag"]),
        ("\t__sync_fetch_and_add(&nr, 1);", 0, "write", [r"%\d+ = atomicrmw add ptr @nr"]),
        ("\t__sync_val_compare_and_swap(&nr, 1, 2);", 0, "write", [r"%\d+ = cmpxchg ptr @nr"]),
        # Where a task has a field is no variable of the policy.
        ("\tnr = p->scx.weight;", 0, "read", [r"%\d+ = load i32, ptr %\d+"]),
        # What is called within another call, before and after.
        ("\tnr = scx_bpf_dsq_nr_queued(scx_bpf_task_cpu(p));", 0, "scx_bpf_task_cpu",
         [r"%\d+ = tail call i32 @scx_bpf_task_cpu", r".*", r"%\d+ = tail call i32 @scx_bpf_dsq_nr_queued", r".*"]),
    ],
)  # fmt: skip
def test_a_delay_is_before_what_a_line_does(body, line, does, wanted, tmp_path, need):
    text = compiled(tmp_path, body, need("clang-19"))
    changed, delays = put_in(text, [Point("t.bpf.c", LINE + line, does)])
    found = after_delays(changed)
    assert len(found) == len(wanted) and all(map(re.match, wanted, found)), found
    assert delays[:1] == [f"before t.bpf.c:{LINE + line}"][: len(wanted)]
    kept = [each for each in changed.splitlines() if "@sl_delay" not in each or each in text]
    assert [each for each in kept if "!DILocation(line" not in each or each in text] == text.splitlines()


def test_a_line_of_an_inlined_function_is_delayed_where_it_has_gone(tmp_path, need):
    text = compiled(tmp_path, "\thelper();\n\tnr = 1;\n\thelper();", need("clang-19"))
    line = HEAD[: HEAD.index("other += 5")].count("\n") + 1
    changed, _ = put_in(text, [Point("t.bpf.c", line, "write")])
    assert after_delays(changed) and all("ptr @other" in each for each in after_delays(changed))


def test_what_a_line_does_no_more_is_delayed_at_what_is_left_of_it(tmp_path, need):
    """The compiler has left the read out: the value is known."""
    text = compiled(tmp_path, "\tnr = 3;\n\tother = nr;", need("clang-19"))
    changed, _ = put_in(text, [Point("t.bpf.c", LINE + 1, "read")])
    assert [re.match(r"store i64 3, ptr @other", each) is not None for each in after_delays(changed)] == [
        True
    ]
    assert put_in(text, [Point("t.bpf.c", 9999, "read"), Point("other.h", LINE, "write")])[1] == []


@pytest.mark.parametrize(("type_", "bits"), [("u64", 64), ("u32", 32), ("u16", 16), ("u8", 8)])
def test_a_write_that_is_watched_is_handed_its_place_and_value(type_, bits, tmp_path, need):
    text = compiled(tmp_path, f"\tstatic {type_} n;\n\tn++;", need("clang-19"))
    place = ("t.bpf.c", LINE + 1)
    changed, _ = put_in(text, [Point(*place, "write")], watched=[place])
    (call,) = (
        line
        for line in changed.splitlines()
        if f"call void @sl_delay_write{bits}(" in line and line not in text
    )
    assert re.search(r"\(i32 0, ptr @\S+, i64 %\S+\), !dbg", call)


def test_callbacks_are_delayed_at_both_ends_of_what_linux_does_between(tmp_path, need):
    text = compiled(tmp_path, "\tnr++;", need("clang-19"))
    changed, delays = put_in(text, [Point(callback="dispatch", next_callback="enqueue")])
    assert delays == ["at the beginning of ops.enqueue()", "at the end of ops.dispatch()"]
    body = changed[changed.index("@t_dispatch(") :]
    assert re.search(r"call void @sl_delay\(i32 1\), !dbg !\d+\n  ret void", body[: body.index("\n}")])


def test_an_invariant_is_tested_where_callbacks_end(tmp_path, need):
    text = compiled(tmp_path, "\tif (enq_flags)\n\t\treturn;\n\tnr++;", need("clang-19"))
    changed, delays = put_in(text, [], tested=("enqueue", "tick", "dispatch"))
    assert delays == [] and text.count("sl_invariant") == 0
    for number, function in ((0, "t_enqueue"), (2, "t_dispatch")):
        body = changed[changed.index(f"@{function}(") :]
        body = body[: body.index("\n}")]
        ends = re.findall(r".*\n  ret ", body)
        assert ends and all(f"call void @sl_invariant(i32 {number}), !dbg" in each for each in ends)


def test_what_is_tested_on_linux_is_each_invariant_but_those_when_all_is_quiet(tmp_path):
    text, names = for_linux(load_policy(str(BUGS / "counter_below_zero.bpf.c")))
    assert "if (!(n_runnable >= 0)) scx_bpf_error(" in text and "after callback %u: n_runnable" in text
    said = names.sub(lambda found: f"ops.{TESTED[int(found[1])]}()", "is false after callback 5: x >= 0")
    assert said == "is false after ops.running(): x >= 0"
    assert for_linux(load_policy(str(BUGS / "counter_not_back.bpf.c")))[0] == ""


@pytest.mark.parametrize("clang", ["clang-19"])
def test_what_is_made_is_an_object_with_the_lines_of_the_source(clang, tmp_path, need):
    need(clang)
    for name in ("bug.h", "bug_ops.h", "torn_counter.bpf.c"):
        shutil.copy(BUGS / name, tmp_path / name)
    path = tmp_path / "torn_counter.bpf.c"
    line = path.read_text()[: path.read_text().index("nr_enqueued++")].count("\n") + 1
    place = (path.name, line)
    made = tmp_path / "made.bpf.o"
    delays = compile_with_delays(path, made, [Point(*place, "write")], watched=[place], watches_locks=True)
    assert delays == [f"before torn_counter.bpf.c:{line}"]
    assert b"nr_enqueued++;" in made.read_bytes(), "what the verifier shows of the source"


SWITCHES = """0\t0\tbegin\t1\ta\tenqueue enq_flags=0x0
0\t0\tswitch\t0\t\tto CPU 1 before mine.bpf.c:14, write
0\t1\tbegin\t0\t\tdispatch cpu=1, prev=none[0]
0\t1\tend\t0\t\tdispatch
0\t1\tswitch\t0\t\tto CPU 0
0\t0\tswitch\t0\t\tto CPU 1 before mine.bpf.c:15, scx_bpf_kick_cpu
0\t1\tbegin\t2\tb\trunning
0\t1\tend\t0\t\trunning
0\t0\tend\t0\t\tenqueue
1\t0\tbegin\t1\ta\tenqueue enq_flags=0x0
1\t0\tswitch\t0\t\tto CPU 1 before mine.bpf.c:14, write
"""


def test_preemptions_become_points():
    calls = read_calls(SWITCHES)
    assert [deed.text for deed in calls[1].deeds] == ["to CPU 0 after it"]
    assert points_of(calls) == [
        Point("mine.bpf.c", 14, "write"),
        Point("mine.bpf.c", 15, "call"),
        Point(callback="dispatch", next_callback="running"),
    ]


def test_tries_are_without_delays_then_with_all_then_with_one():
    tries = [*tries_of([0, 2])]
    assert [each.places for each in tries[:6]] == [0, 0, 5, 1, 5, 4]
    assert [each.number for each in tries[:3]] == [0, 0, 1] and tries[1].is_repeated
    assert len({(each.number, each.is_repeated) for each in tries}) == len(tries)


def test_tasks_are_repeated_with_short_runs_but_for_those_that_have_children():
    text = """
    [workload]
    title = "t"
    question = "?"
    tick = "1ms"
    [[lock]]
    name = "l"
    [[task]]
    name = "a"
    phases = [{run = "100ms"}, {loop = 3, do = [{lock = "l"}, {run = "500us"}, {unlock = "l"}]}]
    [[task]]
    name = "b"
    phases = [{spawn = "c"}, {wait = "all"}]
    [[task]]
    name = "c"
    arrival = "spawned"
    phases = [{run = "1ms"}]
    """
    before = parse_workload(text, name="t.toml")
    after = repeated(before)
    (loop,) = after.tasks[0].phases
    assert [phase.verb for phase in loop.body] == [
        "run",
        "lock",
        "run",
        "unlock",
        "sleep",
    ] and not loop.rounds
    assert [phase.amount.constant for phase in loop.body if phase.verb == "run"] == [1_000_000, 500_000]
    assert after.tasks[1:] == before.tasks[1:]


def test_a_run_says_before_which_line_its_cpus_were_switched(tmp_path, simulator):
    task = task_of(BUGS / "torn_counter.bpf.c")
    with task.laboratory() as laboratory:
        trials = [laboratory.try_world(replace(WORLD, interleaving=f"{seed}:pct2")) for seed in range(200)]
        trial = next(each for each in trials if each.finding)
    world = replace(WORLD, interleaving=trial.interleaving)
    saved = save(world, trial.finding, task.built, tmp_path)
    text = task.built.policy.path.read_text()
    line = text[: text.index("nr_enqueued++")].count("\n") + 1
    calls = calls_of(saved.run, 0, 10**12)
    switches = [deed.text for call in calls for deed in call.deeds if deed.word == "switch"]
    assert any(
        re.fullmatch(rf"to CPU \d before torn_counter\.bpf\.c:{line}, write", each) for each in switches
    )
    assert Point("torn_counter.bpf.c", line, "write") in points_of(calls)
