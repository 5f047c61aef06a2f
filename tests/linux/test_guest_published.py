# SPDX-License-Identifier: MIT
"""A published scheduler of several files is compiled, linked and loaded as its user half would."""

from __future__ import annotations

import pytest

from schedlab.errors import PolicyError
from schedlab.hosts import guest, guest_build
from schedlab.policy import bpf
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.policy.published import main_file

BUILD = """
.enable_skel("src/bpf/main.bpf.c", "bpf")
.add_source("src/bpf/other.bpf.c")
"""
MAIN = """
#include <own/own.h>
char _license[] SEC("license") = "GPL";
const volatile u64 __SCX_ENQ_HEAD __weak;
const volatile u64 __SCX_NO_SUCH_NAME __weak;
const volatile u32 given;
extern unsigned long CONFIG_NR_CPUS __kconfig;
extern unsigned CONFIG_HZ __kconfig;
int RESIZABLE_ARRAY(data, each);
int called;

SEC("syscall")
int prepare(s32 *input)
{
	called = *input;
	return 0;
}

SEC("struct_ops.s/own_init")
s32 BPF_PROG(own_init)
{
	/* The verifier knows how many there are. */
	((volatile int *)each)[1] = 1;
	if (__SCX_ENQ_HEAD != SCX_ENQ_HEAD || __SCX_NO_SUCH_NAME || given != 3)
		return -7;
	if (CONFIG_HZ != 250 || CONFIG_NR_CPUS < 2)
		return -9;
	return other_file(called) == 8 ? 0 : -8;
}

SEC(".struct_ops.link")
struct sched_ext_ops own = { .init = (void *)own_init, .name = "own" };
"""
OTHER = """
#include <own/own.h>
char _license[] SEC("license") = "GPL";

__attribute__((noinline)) int other_file(int value)
{
	return value + 1;
}
"""
HEADER = """
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#define RESIZABLE_ARRAY(section, name) name[1] SEC("." #section "." #name)
int other_file(int value);
"""
#: A kernel has no flag without a callback that it is about.
ENQ_LAST = 1 << 1


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler in a checkout that has nothing else."""
    folder = tmp_path / "scheds" / "rust" / "scx_own"
    include = tmp_path / "scheds" / "include" / "own"
    for place in (folder / "src" / "bpf", include):
        place.mkdir(parents=True)
    (folder / "build.rs").write_text(BUILD)
    (folder / "src" / "bpf" / "main.bpf.c").write_text(MAIN)
    (folder / "src" / "bpf" / "other.bpf.c").write_text(OTHER)
    (include / "own.h").write_text(HEADER)
    return main_file(folder)


def test_what_its_user_half_sets_is_set(guest_parts, scheduler):
    """Numbers of the kernel's names, its configuration, arrays of a CPU each, constants, calls and flags."""
    made = bpf.compile_object(scheduler, toolchain=guest_build.toolchain).read_bytes()
    sets = {"given": 3, "call.0.prepare": 7}
    ran, uncalled, unset, flags, absent = guest.run_guest(
        [
            guest.GuestTask("ran", made, knobs=sets),
            guest.GuestTask("uncalled", made, knobs={"given": 3}),
            guest.GuestTask("unset", made, knobs={"call.0.prepare": 7}),
            guest.GuestTask("flags", made, knobs=sets | {"ops.flags": ENQ_LAST}),
            guest.GuestTask("absent", made, knobs=sets | {"call.1.repair": 0}),
        ],
        cpus=2,
    )
    assert ran.is_loaded and not ran.error, ran.refusal
    assert "(-8)" in uncalled.error or "Exec format" in uncalled.error, uncalled.error
    assert "(-7)" in unset.error or "Argument list" in unset.error, unset.error
    assert "SCX_OPS_ENQ_LAST requires ops.enqueue()" in flags.error
    assert "it has no program repair to call" in absent.error


def test_an_error_names_its_file_and_line(guest_parts, scheduler):
    scheduler.write_text(MAIN.replace("called = *input;", "called = *absent;"))
    with pytest.raises(PolicyError, match=rf"{scheduler}:15:\d+: error: .*absent"):
        bpf.compile_object(scheduler, toolchain=guest_build.toolchain)


def test_a_user_half_in_c_is_refused(scheduler):
    """It could not run; that a scheduler goes without would be seen by no one."""
    (scheduler.parent / "scx_own.launch.c").write_text("static int launch(void) { return 0; }\n")
    with pytest.raises(PolicyError, match=r"no kernel runs its user half, .*scx_own\.launch\.c"):
        build_policy(load_policy(str(scheduler)), engine="bpf")
