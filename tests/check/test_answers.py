# SPDX-License-Identifier: MIT
"""An error of a helper that a policy does not look at is found, with its line, where the call fails."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from schedlab.check.search import Task, do_batch
from schedlab.check.trial import PROPERTIES
from schedlab.check.world import Group, Phase, World
from schedlab.policy import build as policy_build
from schedlab.policy.answers import ANSWERS_FLAG
from schedlab.policy.build import build_policy, compile_policy
from schedlab.policy.find import list_policies, load_policy

BUGS = Path(__file__).resolve().parent / "bugs"
MS = 1_000_000
WORLD = World(1, "", MS, (Group("sleeper", (Phase("run", MS), Phase("sleep", MS)), count=3),))
SOURCE = f"""// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* asks.bpf.c - asks for more than there is room for. */
#include "{BUGS}/bug.h"

struct {{
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, s32);
}} pids SEC(".maps");
struct {{
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, s32);
	__type(value, s32);
}} numbers SEC(".maps");
#include "own.h"
static u64 nr_lost;

#define PUSH(what) bpf_map_push_elem(&pids, (what), 0)
#define OWN_ENQUEUE
void BPF_STRUCT_OPS(bug_enqueue, struct task_struct *p, u64 enq_flags)
{{
	s32 pid = p->pid, zero = 0;

	ASK
	scx_bpf_dsq_insert(p, SHARED, SCX_SLICE_DFL, enq_flags);
	nr_lost += zero;
}}

#include "{BUGS}/bug_ops.h"
"""
OWN = "static inline void put(s32 pid)\n{\n\tbpf_map_push_elem(&pids, &pid, 0);\n}\n"
LINE = SOURCE[: SOURCE.index("ASK")].count("\n") + 1
PUSHED = f"the error of bpf_map_push_elem() at asks.bpf.c:{LINE} is not looked at: E2BIG (-7)"
ASKED = {
    "bpf_map_push_elem(&pids, &pid, 0);": PUSHED,
    "if (pid)\tbpf_map_push_elem(&pids, &pid, 0);": PUSHED,
    "PUSH(&pid);": PUSHED,
    "put(pid);": "the error of bpf_map_push_elem() at own.h:3 is not looked at: E2BIG (-7)",
    "bpf_map_update_elem(&numbers, &pid, &zero, BPF_ANY);": "the error of bpf_map_update_elem() at",
    "scx_bpf_create_dsq(1ULL << 63, -1);": "the error of scx_bpf_create_dsq() at",
    "(void)bpf_map_push_elem(&pids, &pid, 0);": None,
    "nr_lost += bpf_map_push_elem(&pids, &pid, 0) != 0;": None,
    "zero = PUSH(&pid);": None,
    # That something is there, or is not, is an answer.
    "bpf_map_update_elem(&numbers, &zero, &pid, BPF_NOEXIST);": None,
    "bpf_map_update_elem(&numbers, &pid, &pid, BPF_EXIST);": None,
}


@pytest.fixture(params=["gcc", "clang-19"])
def write(tmp_path, monkeypatch, request):
    """Function that writes a policy which makes one call, and returns its path; for each compiler."""
    monkeypatch.setenv("CC", request.param)
    (tmp_path / "own.h").write_text(OWN)

    def make(asked: str) -> Path:
        (tmp_path / "asks.bpf.c").write_text(SOURCE.replace("ASK", asked))
        return tmp_path / "asks.bpf.c"

    return make


def task_of(path: Path, **fields) -> Task:
    return Task(build_policy(load_policy(str(path))), frozenset(PROPERTIES) - {"worse"}, seed=1, **fields)


@pytest.mark.parametrize("asked", ASKED)
def test_a_call_that_is_an_expression_by_itself_is_found_where_it_fails(write, simulator, asked):
    with task_of(write(asked)).laboratory() as laboratory:
        trials = [laboratory.try_world(WORLD), laboratory.try_alone(WORLD)]
    for finding in (trial.finding for trial in trials):
        if ASKED[asked] is None:
            assert finding is None
        else:
            assert finding.broken == "ignored-error" and ASKED[asked] in finding.text, finding


def test_a_call_of_several_lines_is_found(write, simulator):
    with task_of(write("bpf_map_push_elem(\n\t\t&pids, (&pid),\n\t\t0);")).laboratory() as laboratory:
        text = laboratory.try_world(WORLD).finding.text
    assert any(f"asks.bpf.c:{line} is not looked at" in text for line in (LINE, LINE + 2)), text


def test_it_is_not_looked_for_where_other_properties_are_chosen(write, simulator):
    task = task_of(write("PUSH(&pid);"))
    with Task(task.built, frozenset({"error", "stall"}), seed=1, are_chosen=True).laboratory() as laboratory:
        assert laboratory.try_world(WORLD).finding is None


def test_it_is_found_where_cpus_interleave(write, simulator):
    batch = do_batch(task_of(write("PUSH(&pid);"), races=True), 0, 20)
    assert batch.error is None and batch.failed
    assert {finding.broken for _, finding in batch.failed} == {"ignored-error"}


def test_one_of_several_files_is_found(tmp_path, simulator):
    (tmp_path / "main.bpf.c").write_text(
        SOURCE.replace("ASK", "ask(pid);").replace('#include "own.h"', "void ask(s32 pid);")
    )
    (tmp_path / "other.bpf.c").write_text(
        "#include <scx/common.bpf.h>\nstruct { __uint(type, BPF_MAP_TYPE_QUEUE); __uint(max_entries, 1); "
        '__type(value, s32); } few SEC(".maps");\nvoid ask(s32 pid);\n'
        "void ask(s32 pid)\n{\n\tbpf_map_push_elem(&few, &pid, 0);\n}\n"
    )
    with task_of(tmp_path).laboratory() as laboratory:
        assert "other.bpf.c:6 is not looked at" in laboratory.try_world(WORLD).finding.text


def test_schedlabs_own_policies_look_at_all_answers(monkeypatch):
    found = []
    monkeypatch.setattr(policy_build, "with_answers", lambda ignored: found.extend(ignored) or "")
    monkeypatch.setattr(policy_build, "FLAGS", (*policy_build.FLAGS, "-DSL_OF_THIS_TEST"))  # none is cached
    for name in list_policies():
        compile_policy(load_policy(name), more_flags=(ANSWERS_FLAG,))
    assert found == []


def test_the_command_names_it_in_all_its_forms(root, tmp_path):
    words = [root / "lab", "check", BUGS / "unchecked_push.bpf.c", "--worlds", "300", "--out", tmp_path]
    done = subprocess.run([*words, "--junit", tmp_path / "x.xml"], capture_output=True, text=True)
    text = " ".join(done.stdout.split())
    assert done.returncode == 1 and "unchecked_push.bpf.c:21 is not looked at" in text, done.stderr
    assert "answers.h" not in done.stdout, "lines that were written for the test are not the policy's"
    failed = [case for case in ElementTree.parse(tmp_path / "x.xml").iter("testcase") if len(case)]
    assert ["ignored-error" in case.get("name") for case in failed] == [True]
    replay = [root / "lab", "check", words[2], "--replay", tmp_path / "ignored-error-1.toml", "--json"]
    (found,) = json.loads(subprocess.run(replay, capture_output=True, text=True).stdout)["found"]
    assert found["property"] == "ignored-error"
