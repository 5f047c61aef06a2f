# SPDX-License-Identifier: MIT
"""What a policy prints is kept in its run's folder; what it leaves running is ended."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import schedlab
from schedlab.cli.app import app

runner = CliRunner()
HEAD = """/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
"""
ENQUEUE = """
void BPF_STRUCT_OPS(own_enqueue, struct task_struct *p, u64 enq_flags)
{
	%s
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 2000000, enq_flags);
}
SCX_OPS_DEFINE(own_ops, .enqueue = (void *)own_enqueue, %s.name = "own");
"""
#: It has left its session, holds the pipes of the run, and waits for ever.
DAEMON = """
static long call(long number)
{
	long result = 0;

#ifndef __bpf__ /* where clang would refuse it at once */
	asm volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
#endif
	return result;
}
s32 BPF_STRUCT_OPS_SLEEPABLE(own_init)
{
	long pid = call(57); /* fork */

	if (!pid) {
		call(112); /* setsid */
		for (;;)
			call(34); /* pause */
	}
	bpf_printk("daemon %ld", pid);
	return 0;
}
"""


@pytest.fixture
def run_own(tmp_path, need, simulator):
    need("cc")

    def run(source: str, host: str) -> tuple[dict, str]:
        """The run of a policy, and what it printed."""
        # A folder may be called so.
        (tmp_path / "my policies").mkdir(exist_ok=True)
        policy = tmp_path / "my policies" / "own.bpf.c"
        policy.write_text(HEAD + source)
        result = schedlab.run("mixed", policy, host=host, out=tmp_path / "out", timeout="300s")
        (run,) = result.runs.to_dicts()
        log = Path(run["directory"], "policy.log")
        return run, log.read_text() if log.exists() else ""

    return run


@pytest.mark.full
@pytest.mark.parametrize("host", ["sim", "uthreads"])
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the policy has system calls of x86-64")
def test_a_daemon_does_not_outlive_the_run_nor_keep_it(run_own, host):
    run, log = run_own(DAEMON + ENQUEUE % ("", ".init = (void *)own_init, "), host)
    # On user threads, a machine that others have makes a run void.
    assert run["error_kind"] in (None, "void")
    assert "left running" in log
    (pid,) = re.findall(r"daemon (\d+)$", log, re.MULTILINE)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@pytest.mark.full
@pytest.mark.parametrize("host", ["sim", "uthreads"])
@pytest.mark.parametrize("is_good", [True, False])
def test_each_line_of_a_policy_is_kept(run_own, host, is_good):
    wrong = "" if is_good else 'if (p->pid == 3) scx_bpf_error("enough");'
    run, log = run_own(ENQUEUE % ('bpf_printk("queued %s", p->comm);' + wrong, ""), host)
    assert run["error_kind"] in ((None, "void") if is_good else ("policy",))
    lines = log.splitlines()
    assert lines and all("queued " in line for line in lines if "enough" not in line)
    # Its seven tasks arrive at one instant, and each is queued before it first runs.
    assert len(lines) >= (7 if is_good else 1)


def test_a_silent_policy_has_no_log(run_own):
    _, log = run_own(ENQUEUE % ("", ""), "sim")
    assert log == ""


@pytest.mark.full
@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("if (p->pid == 3) *(volatile int *)(u64)p->pid = 1;", "accessed invalid memory"),
        (
            "static volatile u64 seen[2]; seen[p->pid]++; seen[p->pid & 1]++;",
            "used an index outside of its array",
        ),
        ('while (p->pid == 3) asm volatile("");', "did not return"),
    ],
)
def test_a_crash_names_its_source_line_and_keeps_what_led_there(run_own, need, statement, text):
    need("addr2line")
    source = ENQUEUE % (statement, "")
    run, _ = run_own(source, "sim")
    line = (HEAD + source)[: (HEAD + source).index(statement)].count("\n") + 1
    assert text in run["error"]
    assert run["error"].endswith(f", at own.bpf.c:{line}")
    drawn = runner.invoke(app, ["gantt", run["directory"], "--width", "100"])
    assert drawn.exit_code == 0, drawn.output
    assert "task[" not in drawn.output
