# SPDX-License-Identifier: MIT
"""Which lines of a policy have run: what is said to be reached was, and what cannot run was not."""

from __future__ import annotations

import bisect
import json
import re
import subprocess

import pytest

from schedlab.check import coverage
from schedlab.check.coverage import ranges
from schedlab.check.search import Task, search
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy

POLICY = """// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* covered - has lines that run in no world, and one that runs in each. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";
static u64 nr_seen, nr_of_cpu[64];

static u64 slice(u64 nr_cpus)
{
	if (nr_cpus > 900)
		return 1000;
	return nr_seen++ & 1 ? 2000000 : 3000000;
}

void BPF_STRUCT_OPS(covered_enqueue, struct task_struct *p, u64 enq_flags)
{
	u64 ns = slice(scx_bpf_nr_cpu_ids());

	nr_of_cpu[bpf_get_smp_processor_id() % 64]++;
	if (enq_flags == 12345 && nr_seen == 7)
		nr_seen = 1;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, ns, enq_flags);
}

s32 BPF_STRUCT_OPS(covered_set_weight_never, u32 weight)
{
	return weight > 100;
}

SCX_OPS_DEFINE(covered_ops, .enqueue = (void *)covered_enqueue, .name = "covered");
"""


def line_of(text: str) -> str:
    """Where a text is in the policy, as coverage names it."""
    number = POLICY[: POLICY.index(text)].count("\n") + 1
    return f"covered.bpf.c:{number}"


@pytest.fixture(params=["gcc", "clang-19"])
def policy(tmp_path, monkeypatch, request):
    monkeypatch.setenv("CC", request.param)
    (tmp_path / "covered.bpf.c").write_text(POLICY)
    return tmp_path / "covered.bpf.c"


def found(policy, **options):
    task = Task(
        build_policy(load_policy(str(policy))), frozenset({"error", "consistency"}), seed=1, **options
    )
    return search(task, budget_seconds=120, n_worlds_max=200, n_processes=2)


@pytest.mark.parametrize("races", [False, True])
def test_what_cannot_run_is_named_and_what_runs_is_not(policy, simulator, races):
    report = found(policy, races=races)
    lines = report.coverage
    assert {line_of("return 1000"), line_of("nr_seen = 1;"), line_of("return weight")} <= set(lines.never)
    ran = [
        line_of(text)
        for text in ("return nr_seen++", "scx_bpf_dsq_insert", "u64 ns =", "if (nr_cpus", "nr_of_cpu[bpf")
    ]
    assert not set(ran) & {*lines.never, *lines.in_part}, lines
    assert line_of("if (enq_flags") in lines.in_part
    assert lines.n_lines > len(lines.never) + len(lines.in_part)
    assert all(place.startswith("covered.bpf.c:") for place in lines.never), "headers are not the policy's"


def test_a_block_has_lines_of_one_function(policy):
    compiled = coverage.compile_covered(build_policy(load_policy(str(policy))), ())
    ends = [POLICY[: at.start()].count("\n") + 1 for at in re.finditer("^}", POLICY, re.MULTILINE)]
    blocks = coverage._blocks(compiled).values()
    functions = [{bisect.bisect_left(ends, line) for _, line in lines} for lines in blocks]
    assert all(len(each) <= 1 for each in functions) and set().union(*functions) == {0, 1, 2}, functions


def test_lines_of_what_tests_an_invariant_are_not_the_policys(policy, simulator):
    text = POLICY.replace(
        "in each. */", "in each.\n * @invariant nr_seen < 1000000\n * @invariant true when quiet\n */"
    )
    policy.write_text(text)
    lines = found(policy).coverage
    n_lines = text.count("\n")
    numbers = [int(place.rpartition(":")[2]) for place in (*lines.never, *lines.in_part)]
    assert all(place.startswith("covered.bpf.c:") for place in lines.never) and max(numbers) <= n_lines, lines
    at = text[: text.index("return 1000")].count("\n") + 1
    assert f"covered.bpf.c:{at}" in lines.never


def test_the_command_says_how_much_and_which(policy, simulator, root, tmp_path):
    words = [root / "lab", "check", policy, "--worlds", "100", "--out", tmp_path / "out"]
    text = " ".join(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())
    assert (
        "lines of the policy reached in a sample" in text
        and f"Never reached: {line_of('return 1000')}, " in text
    ), text
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=True)
    lines = json.loads(done.stdout)["lines"]
    assert line_of("return 1000") in lines["never"] and lines["n_lines"] > 5


def test_without_tools_nothing_is_said_of_lines(policy, simulator, monkeypatch):
    task = Task(build_policy(load_policy(str(policy))), frozenset({"error"}), seed=1)
    monkeypatch.setattr(coverage.shutil, "which", lambda name: None)
    assert coverage.compile_covered(task.built, ()) is None


def test_neighbours_are_one_range():
    assert ranges(["a.c:3", "a.c:4", "a.c:5", "a.c:9", "b.h:1"]) == "a.c:3-5, 9; b.h:1"
