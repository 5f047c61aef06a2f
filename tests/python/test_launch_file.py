# SPDX-License-Identifier: MIT
"""Launch files: the constants that a scheduler's user half sets, by name and by machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import schedlab
from schedlab.errors import PolicyError
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy, policy_name
from schedlab.policy.launch_file import for_machine, read_launch_file

SOURCE = """\
/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include <scx/common.bpf.h>

const volatile u32 n_cpus = 1;
const volatile u64 slice_ns;
char _license[] SEC("license") = "GPL";
UEI_DEFINE(uei);

void BPF_STRUCT_OPS(mine_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice_ns, enq_flags);
}

struct pair {
	s32 a, b;
};
static s32 sum;

SEC("syscall") int add(struct pair *input)
{
	sum = sum * 10 + input->a + input->b;
	return input->a == 7 ? -1 : 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(mine_init)
{
	bpf_printk("cpus %u slice %llu sum %d", n_cpus, slice_ns, sum);
	return 0;
}

SCX_OPS_DEFINE(mine_ops, .enqueue = (void *)mine_enqueue, .init = (void *)mine_init, .name = "mine");
"""
LAUNCH = """\
[rodata]
n_cpus = "cpus"
slice_ns = "3ms"
[ops]
flags = ["SCX_OPS_ENQ_EXITING", "SCX_OPS_ENQ_LAST"]
flags_on_nodes = ["SCX_OPS_BUILTIN_IDLE_PER_NODE"]
[[call]]
program = "add"
input = [5, -2]
[[call]]
program = "add"
input = [4]
"""


@pytest.fixture
def policy(tmp_path):
    """Function that writes the policy beside a launch file, and loads it."""

    def write(launch: str):
        (tmp_path / "mine.bpf.c").write_text(SOURCE)
        (tmp_path / "mine.launch.toml").write_text(launch)
        return load_policy(str(tmp_path / "mine.bpf.c"))

    return write


def test_it_is_held_against_the_variables(policy):
    built = build_policy(policy(LAUNCH))
    assert built.values == {}
    assert built.launch == {
        "n_cpus": "cpus",
        "slice_ns": 3_000_000,
        "ops.flags": 6,
        "ops.flags_on_nodes": 64,
    } | {"call.0.add": 5 + (0xFFFFFFFE << 32), "call.1.add": 4}


def test_a_word_for_the_machine_becomes_its_number():
    values = {"a": "cpus", "b": "nodes", "c": "caches", "d": "has_smt", "e": 7}
    assert for_machine(values, 8) == {"a": 8, "b": 1, "c": 1, "d": 0, "e": 7}
    assert for_machine(values, 8, {"smt": 2, "llc": 3, "node": 4}) == {"a": 8, "b": 2, "c": 3, "d": 1, "e": 7}


def test_flags_on_nodes_are_those_of_several_nodes():
    values = {"ops.flags": 6, "ops.flags_on_nodes": 64, "a": "has_nodes", "b": "has_one_node"}
    assert for_machine(values, 8) == {"ops.flags": 6, "a": 0, "b": 1}
    assert for_machine(values, 8, {"node": 8}) == {"ops.flags": 6, "a": 0, "b": 1}
    assert for_machine(values, 8, {"node": 4}) == {"ops.flags": 70, "a": 1, "b": 0}


@pytest.mark.usefixtures("simulator")
def test_the_simulator_sets_it(policy, tmp_path):
    path = policy(LAUNCH).path
    result = schedlab.run("mixed", [str(path)], cpus=3, out=tmp_path / "out")
    (run,) = result.runs.to_dicts()
    assert "cpus 3 slice 3000000 sum 34" in Path(run["directory"], "policy.log").read_text()


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize(
    ("program", "input_", "words"),
    [("add", 7, 'SEC("syscall") program add returned -1'), ("sub", 1, "no such program")],
)
def test_a_call_that_fails_is_a_failed_run(policy, tmp_path, program, input_, words):
    path = policy(f"[[call]]\nprogram = '{program}'\ninput = [{input_}]\n").path
    (run,) = schedlab.run("mixed", [str(path)], out=tmp_path / "out").runs.to_dicts()
    assert words in run["error"]


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        ("[rodata]\nslice_nss = 1\n", ["rodata.slice_nss", "no number of that name", "slice_ns"]),
        ("[rodata]\nslice_ns = 'long'\n", ["rodata.slice_ns", "cpus, nodes, caches"]),
        ("[rodata]\nslice_ns = '0.5ns'\n", ["rodata.slice_ns", "not a whole number"]),
        ("[rodatas]\nslice_ns = 1\n", ["'rodatas' is not known", "rodata"]),
        ("rodata = 1\n", ["begin it with [rodata]"]),
        ("[ops]\nflags = ['SCX_OPS_NONE']\n", ["no 'SCX_OPS_NONE'", "SCX_OPS_ENQ_LAST"]),
        ("[ops]\nname = 'x'\n", ["ops.name cannot be set"]),
        ("[[call]]\nprogram = 'add'\n", ["one s32 or two"]),
        ("[[call]]\nprogram = 'add'\ninput = [1, 2, 3]\n", ["one s32 or two"]),
        ("[rodata\n", ["mine.launch.toml"]),
        ("[maps]\nqueue = 4\n", ["maps.queue", "there is no map of that name"]),
        ("[maps]\nqueue = 0\n", ["maps.queue", "not a positive integer"]),
    ],
)
def test_a_mistake_is_named(policy, launch, words):
    with pytest.raises(PolicyError) as error:
        build_policy(policy(launch))
    assert all(word in str(error.value) for word in words), str(error.value)
    assert re.search(r"mine\.launch\.toml:\d+: |no number of that name", str(error.value))


def test_those_that_come_with_schedlab_can_be_read(root):
    files = sorted((root / "policies" / "launch").glob("*.launch.toml"))
    assert len(files) >= 7
    for file in files:
        read_launch_file(file)


def test_a_published_scheduler_has_the_name_of_its_folder(tmp_path):
    assert policy_name(tmp_path / "scx_rusty" / "src" / "bpf" / "main.bpf.c") == "scx_rusty"
    assert policy_name(tmp_path / "scx_mitosis" / "src" / "bpf" / "mitosis.bpf.c") == "scx_mitosis"
    assert policy_name(tmp_path / "scx_mine" / "other.bpf.c") == "other"
    assert policy_name(tmp_path / "main.bpf.c") == "main"
