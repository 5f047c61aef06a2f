# SPDX-License-Identifier: MIT
"""Every policy loads into a real kernel, and the kernel's complaints reach us."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from linux import verifier_counts
from linux.verifier_counts import KNOB_VARIANTS
from schedlab.errors import PolicyError
from schedlab.hosts.guest import policies as guest
from schedlab.policy.bpf import compile_object

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parent.parent.parent
POLICIES = sorted(path.name.removesuffix(".bpf.c") for path in (ROOT / "policies").glob("*.bpf.c"))
#: A policy is read by people and verified at each load: neither may take long.
INSTRUCTIONS_MAX = 100_000


@pytest.mark.parametrize("name", [*POLICIES, "everything"])
def test_policy_loads_and_leaves(load_answers, name):
    answer = load_answers[name]
    assert answer.is_loaded, answer.refusal or answer.fatal
    assert answer.ended_by == "by us", answer.kernel_text
    assert answer.disabled_reason == "unregistered from user space"
    assert answer.fatal == []
    assert answer.instructions and 0 < max(answer.instructions.values()) < INSTRUCTIONS_MAX


@pytest.mark.parametrize("name", KNOB_VARIANTS)
def test_every_setting_of_a_knob_loads(load_answers, name):
    answer = load_answers[name]
    assert answer.is_loaded, answer.refusal or answer.fatal
    assert answer.ended_by == "by us", answer.kernel_text


def test_verifier_has_no_more_to_do_than_before(load_answers):
    """Where a policy is to grow: tools/bless --verifier, and the diff is reviewed."""
    before, now = verifier_counts.read_baseline(), verifier_counts.versions()
    is_same = all(before[key] == value for key, value in now.items())
    tolerated = verifier_counts.TOLERATED if is_same else verifier_counts.TOLERATED_ELSEWHERE
    wrong = [
        f"{name}: {what}"
        for name in (*POLICIES, *KNOB_VARIANTS)
        for what in verifier_counts.grown(
            load_answers[name].instructions, before["counts"].get(name, {}), tolerated=tolerated
        )
    ]
    assert not wrong, f"{now}, {before['kernel']} and {before['clang']} before"


def test_growth_and_new_callbacks_are_seen():
    before = {"enqueue": 100, "gone": 5}
    assert verifier_counts.grown({"enqueue": 100}, before, tolerated=0) == []
    assert verifier_counts.grown({"enqueue": 125}, before, tolerated=0.25) == []
    assert verifier_counts.grown({"enqueue": 126, "tick": 1}, before, tolerated=0.25) == [
        "enqueue: 126 instructions, 100 before",
        "tick: is new",
    ]


def test_policy_that_forgets_tasks_is_thrown_out(load_answers):
    answer = load_answers["stalls"]
    assert answer.is_loaded and answer.ended_by == "by the kernel"
    assert answer.disabled_reason == "runnable task stall"
    assert re.search(r"\[\d+\] failed to run for \d+\.\d+s", answer.kernel_text)


def test_policy_that_names_an_unknown_queue_is_thrown_out(load_answers):
    answer = load_answers["unknown_dsq"]
    assert answer.is_loaded and answer.ended_by == "by the kernel"
    assert answer.disabled_reason == "runtime error"
    assert "non-existent DSQ 0x63" in answer.kernel_text


def test_policy_that_reports_an_error_is_thrown_out(load_answers):
    answer = load_answers["gives_up"]
    assert answer.ended_by == "by the kernel"
    assert "gives_up: enough after 3" in answer.kernel_text


def test_refusal_shows_the_line_of_the_source(load_answers):
    answer = load_answers["no_null_check"]
    assert not answer.is_loaded and answer.ended_by == ""
    assert "invalid mem access 'map_value_or_null'" in answer.refusal
    assert "attr->burst_ns" in answer.refusal


@pytest.mark.full
def test_knobs_are_set_by_name_and_unknown_ones_refused(guest_parts, bad_policies):
    policy = compile_object(bad_policies / "gives_up.bpf.c").read_bytes()
    patient, wrong = guest.run_guest(
        [
            guest.GuestTask("patient", policy, knobs={"patience": 5}),
            guest.GuestTask("wrong", policy, knobs={"patienc": 5}),
        ]
    )
    assert "enough after 5" in patient.kernel_text
    assert not wrong.is_loaded and "has no knob patienc" in wrong.refusal


@pytest.mark.full
def test_guest_that_never_ends_is_stopped(guest_parts, root):
    policy = compile_object(root / "policies" / "fifo.bpf.c").read_bytes()
    (answer,) = guest.run_guest([guest.GuestTask("endless", policy, hold_ms=10**9)], timeout_s=2)
    assert "no end after 2 s" in answer.fatal[0]


def test_error_of_the_compiler_names_the_users_line(guest_parts, tmp_path):
    wrong = tmp_path / "wrong.bpf.c"
    wrong.write_text("#include <scx/common.bpf.h>\nint x = nothing;\n")
    with pytest.raises(PolicyError, match=r"wrong\.bpf\.c:2:9.*\n?.*nothing"):
        compile_object(wrong)


def test_object_is_the_same_wherever_it_is_compiled(root, tmp_path, monkeypatch):
    """Its length counts in the guest: in another folder mlfq's run was another one."""
    if guest.unavailable_reason():
        pytest.skip(guest.unavailable_reason())
    here = compile_object(root / "policies" / "mlfq.bpf.c").read_bytes()
    for name in ("policies", "include"):
        shutil.copytree(root / name, tmp_path / "elsewhere" / name)
    monkeypatch.setenv("SCHEDLAB_ROOT", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "first"))
    assert compile_object(tmp_path / "elsewhere" / "policies" / "mlfq.bpf.c").read_bytes() == here
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "second"))
    monkeypatch.chdir(tmp_path / "elsewhere" / "policies")
    assert compile_object(Path("../policies/mlfq.bpf.c")).read_bytes() == here


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_policy_that_uses_everything_compiles_natively(need, root, bad_policies, tmp_path, compiler):
    subprocess.run(
        [need(compiler), "-std=gnu11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror",
         "-Wno-unused-parameter", f"-I{root / 'include'}", "-o", tmp_path / "everything.so",
         bad_policies / "everything.bpf.c"],
        check=True,
    )  # fmt: skip


def names_of(header: str) -> set[str]:
    """What of Linux's interface a header declares or defines for policies."""
    text = (ROOT / "include" / "scx" / header).read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return set(re.findall(r"\b((?:scx_bpf|bpf|SCX|BPF|__arg)_\w+)\b", text))


def test_both_sides_of_the_contract_offer_the_same_names():
    """Names in one header only are how the other side does it, not an offer."""
    native = names_of("native.h") | names_of("types.h")
    linux = names_of("bpf.h") | names_of("bpf_types.h")
    assert sorted(native - linux) == ["SCX_NATIVE_H", "SCX_TYPES_H"]
