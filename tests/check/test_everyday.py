# SPDX-License-Identifier: MIT
"""What `schedlab check` does where a search is disturbed, and what is typed after it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from check.test_check import BUGS, check, task_of
from schedlab import paths
from schedlab.check import search as search_module
from schedlab.check.search import Known, do_batch, search
from schedlab.check.shrink import shrink
from schedlab.check.trial import Laboratory
from schedlab.errors import SchedlabError

pytestmark = pytest.mark.full
LOOPS = """/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
static volatile u64 n;
void BPF_STRUCT_OPS(loops_enqueue, struct task_struct *p, u64 enq_flags)
{
	while (p->nr_cpus_allowed == 1)
		n++;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}
SCX_OPS_DEFINE(loops_ops, .enqueue = (void *)loops_enqueue, .name = "loops");
"""


def test_a_callback_without_end_is_waited_for_once_and_ends_its_batch(tmp_path, simulator, monkeypatch):
    """Half of the worlds have such a callback: waiting for each, no batch came to an end within a minute."""
    (tmp_path / "loops.bpf.c").write_text(LOOPS)
    alone, real = [], Laboratory.try_alone
    monkeypatch.setattr(Laboratory, "try_alone", lambda self, world: alone.append(world) or real(self, world))
    batch = do_batch(task_of(tmp_path / "loops.bpf.c"), 0)
    assert len(batch.failed) > 5 and batch.n_worlds == 25 and batch.error is None
    # Which instruction of the loop the signal interrupts is the machine's choice.
    assert all(re.search(r"loops\.bpf\.c:[78]", finding.text) for _, finding in batch.failed)
    assert len({finding.signature for _, finding in batch.failed}) == 1
    assert len(alone) == 1


def test_ctrl_c_while_a_world_is_made_smaller_keeps_the_smallest_so_far(simulator, monkeypatch):
    task = task_of(BUGS / "forgotten_kick.bpf.c")
    world, finding = do_batch(task, 0).failed[0]
    with task.laboratory() as laboratory:
        left = [1] * 12
        tried = laboratory.try_world

        def try_world(one):
            if not left:
                raise KeyboardInterrupt
            left.pop()
            return tried(one)

        monkeypatch.setattr(laboratory, "try_world", try_world)
        small = shrink(laboratory, world, finding, slice_ns=20_000_000)
        assert small.is_interrupted and small.n_trials == 12 and small.world.size < world.size
        monkeypatch.undo()
        assert laboratory.try_world(small.world).finding.signature == finding.signature


def test_ctrl_c_after_a_failure_was_made_small_keeps_it(simulator, monkeypatch):
    task = task_of(BUGS / "urgent_always_first.bpf.c")
    world = do_batch(task, 0).failed[0][0]
    at = []

    def avoidable(*_):
        at.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr("schedlab.check.search.avoidable", avoidable)
    report = search(task, budget_seconds=60, corpus=[Known(world)], only_corpus=True)
    assert (
        at and report.is_interrupted and [each.smallest.finding.broken for each in report.found] == ["stall"]
    )


def test_a_defect_of_schedlab_loses_nothing_that_was_found_before(simulator, monkeypatch):
    calls = []

    def confirm(*what):
        calls.append(what)
        if len(calls) > 1:
            raise SchedlabError("a failure does not repeat")

    monkeypatch.setattr("schedlab.check.search._confirm", confirm)
    worlds = [world for path in ("urgent_always_first", "forgotten_kick") for world, _ in
              do_batch(task_of(BUGS / f"{path}.bpf.c"), 0).failed[:3]]  # fmt: skip
    task = task_of(BUGS / "forgotten_kick.bpf.c")
    monkeypatch.setattr("schedlab.check.search.Finding.signature", property(lambda self: self.text))
    report = search(task, budget_seconds=60, corpus=[*map(Known, worlds)], only_corpus=True, finds_all=True)
    assert len(report.found) == 1 and report.defect == "a failure does not repeat"


def test_what_is_to_be_typed_stays_in_one_line_of_a_narrow_terminal(tmp_path, simulator, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    said = check(BUGS / "forgotten_kick.bpf.c", "--worlds", 100, cwd=tmp_path).stdout
    (line,) = [line for line in said.splitlines() if "Repeat it:" in line]
    assert line.endswith("--seed 1") and len(line) > 60


def test_a_policy_without_its_user_half_is_said_to_be_one(tmp_path, simulator):
    queue = 'struct {{ __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 64); __type(value, s32); }} {} SEC(".maps");'
    text = LOOPS.replace("static volatile u64 n;", queue.format("given") + queue.format("back")).replace(
        "\twhile (p->nr_cpus_allowed == 1)\n\t\tn++;\n",
        "\ts32 pid = p->pid;\n\n\tbpf_map_push_elem(&given, &pid, 0);\n\tbpf_map_pop_elem(&given, &pid);\n"
        "\tbpf_map_pop_elem(&back, &pid);\n",
    )
    (tmp_path / "asks.bpf.c").write_text(text)
    said = " ".join(
        check(tmp_path / "asks.bpf.c", "--property", "stall", "--worlds", 100, cwd=tmp_path).stdout.split()
    )
    assert "Its user half is missing: nothing here puts anything into back, from which" in said


def test_virtual_time_is_held_where_it_is_asked_for_and_refused_where_it_cannot_be(tmp_path, simulator):
    """It was held where the header declares it alone, and said to be held where nothing was tested."""
    text = (BUGS / "charge_underflows.bpf.c").read_text()
    for name in ("bug.h", "bug_ops.h"):
        (tmp_path / name).write_text((BUGS / name).read_text())
    (tmp_path / "leaps.bpf.c").write_text(text.replace("@virtual-time yes", "it goes by virtual time"))
    assert "@virtual-time" not in (tmp_path / "leaps.bpf.c").read_text()
    words = ("--property", "vtime", "--worlds", 100)
    done = check("leaps.bpf.c", *words, cwd=tmp_path)
    assert done.returncode == 1 and "virtual time of" in done.stdout
    done = check("leaps.bpf.c", "--property", "invariant", cwd=tmp_path)
    assert done.returncode == 2 and "declares none" in done.stderr
    bare = re.sub(
        r"SCX_OPS_DEFINE\((\w+),(.*)\);", r'SEC(".struct_ops.link") struct sched_ext_ops \1 = {\2};', LOOPS
    )
    (tmp_path / "bare.bpf.c").write_text(bare)
    done = check("bare.bpf.c", *words, cwd=tmp_path)
    assert done.returncode == 2 and "without SCX_OPS_DEFINE" in done.stderr


@pytest.mark.parametrize(
    "asked", [("rt_fifo", "--property", "stall"), ("fifo", "--never-worse-than", "rr", "--by", "50%")]
)
def test_what_was_asked_for_is_held_when_its_world_is_tried_again(asked, tmp_path, simulator):
    """Headers say nothing of it, or the contrary: with nothing mended, replay and test passed."""
    policy, *options = asked
    assert check(policy, *options, "--worlds", 100, cwd=tmp_path).returncode == 1
    (world,) = tmp_path.glob("out/check/*/*-1.toml")
    words = ("--replay", world.relative_to(tmp_path))
    again = check(policy, *words, "--out", "again", cwd=tmp_path)
    assert again.returncode == 1 and f"--replay {words[1]}" in again.stdout
    # What is found again is in the file that is there.
    assert not [*tmp_path.glob("again/*.toml")]


def test_a_file_that_is_there_stays(tmp_path, simulator):
    for name in ("bug.h", "bug_ops.h"):
        (tmp_path / name).write_text((BUGS / name).read_text())
    for bug in ("cpu_zero_is_none", "newest_first", "newest_first"):
        (tmp_path / "mine.bpf.c").write_text((BUGS / f"{bug}.bpf.c").read_text())
        assert check("mine.bpf.c", "--worlds", 100, cwd=tmp_path).returncode == 1
        for path in tmp_path.glob("out/check/mine/*-1.toml"):
            path.write_text("# a note\n" + path.read_text().removeprefix("# a note\n"))
    worlds = sorted(path.name for path in tmp_path.glob("out/check/mine/*.toml"))
    assert worlds == ["stall-1.toml", "stall-2.toml"]
    assert (tmp_path / "out/check/mine/stall-1.toml").read_text().startswith("# a note\n")


def test_a_search_in_which_no_world_ends_is_over_with_its_budget(tmp_path, simulator):
    """It said so, and then waited for its processes for as long as they liked: 48 s in all."""
    endless = LOOPS.replace(
        "SCX_OPS_DEFINE(loops_ops,", "SCX_OPS_DEFINE(loops_ops, .init = (void *)loops_init,"
    )
    init = "s32 BPF_STRUCT_OPS_SLEEPABLE(loops_init)\n{\n\twhile (!n)\n\t\t;\n\treturn 0;\n}\n"
    (tmp_path / "loops.bpf.c").write_text(endless.replace("SCX_OPS_DEFINE", init + "SCX_OPS_DEFINE", 1))
    done = check("loops.bpf.c", "--budget", "1s", cwd=tmp_path)
    assert done.returncode == 2 and "as where a callback does not return" in done.stderr


def test_a_process_of_a_search_that_ends_is_said(simulator):
    """It ends in the middle of a batch, and where it is sent the next one."""
    task = task_of("rr")
    for number in (0, 3):
        worker = search_module._Worker(task)
        for each in range(number):
            worker.send(each)
        worker.kill()
        worker._process.join()
        with pytest.raises(SchedlabError, match="has ended by itself, with status -9"):
            worker.receive() if number else worker.send(0)
        worker.close()


def test_an_error_in_a_process_of_a_search_is_said_as_it_is(simulator):
    missing = replace(task_of("rr"), scratch=Path("/nosuch"))
    worker = search_module._Worker(missing)
    worker.send(0)
    assert "No such file or directory: '/nosuch" in worker.receive()[1].error
    worker.kill()
    worker.close()


def test_a_comparison_is_held_for_its_world_alone_and_from_each_folder(tmp_path, simulator):
    (tmp_path / "base.bpf.c").write_text(paths.policies_folder().joinpath("rr.bpf.c").read_text())
    words = ("fifo", "--never-worse-than", "base.bpf.c", "--worlds", 100)
    assert check(*words, cwd=tmp_path).returncode == 1
    (tmp_path / "elsewhere").mkdir()
    (world,) = tmp_path.glob("out/check/fifo/worse-1.toml")
    again = check("fifo", "--replay", world, cwd=tmp_path / "elsewhere")
    assert again.returncode == 1 and "under base" in " ".join(again.stdout.split()), again.stderr
    # Of a corpus it is tried first, and the worlds that are drawn are compared with nothing.
    done = check("fifo", "--corpus", world.parent, "--all", "--worlds", 100, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert {each["property"] for each in found["found"]} == {"worse"} and "worse" not in found["properties"]


def test_a_test_finds_its_policy_through_a_link(tmp_path, simulator):
    for name in ("bug.h", "bug_ops.h", "cpu_zero_is_none.bpf.c"):
        (tmp_path / name).write_text((BUGS / name).read_text())
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "out").symlink_to("far/away")
    assert check("cpu_zero_is_none.bpf.c", "--worlds", 100, cwd=tmp_path).returncode == 1
    (test,) = tmp_path.glob("out/check/*/test_*.py")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", test],
                          cwd=tmp_path / "far", capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1 and "stall" in done.stdout and "no such file" not in done.stdout
