# SPDX-License-Identifier: MIT
"""gdb stands where the records say that the run was, forwards and backwards."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from schedlab.api import run as run_policies
from schedlab.records.file import Kind, read_records

pytestmark = pytest.mark.full
FAILS = """// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* fails - gives up when it is to place its tenth task. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";
static u64 nr;

void BPF_STRUCT_OPS(fails_enqueue, struct task_struct *p, u64 enq_flags)
{
	if (++nr == 10)
		scx_bpf_error("that is enough");
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 1000000, enq_flags);
}

SCX_OPS_DEFINE(fails_ops, .enqueue = (void *)fails_enqueue, .name = "fails");
"""


INIT = """s32 BPF_STRUCT_OPS_SLEEPABLE(fails_init)
{
	scx_bpf_error("not here");
	return 0;
}

"""


def debug(folder, *words) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "schedlab", "debug", str(folder), *words],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def places(done: subprocess.CompletedProcess) -> list[str]:
    """Where it said it was: time, CPU, operation, task."""
    return re.findall(r"^(\S+ ms, CPU \d+: ops\..*)$", done.stdout, re.M)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, need, build):
    """A run of mlfq on two CPUs."""
    need("gdb")
    out = tmp_path_factory.mktemp("debug")
    run_policies("mixed", ["mlfq"], seeds=1, cpus=2, out=out)
    (found,) = out.rglob("run.json")
    return found.parent


def test_the_way_back_is_the_way_there(folder):
    """Also across instants in which several callbacks run, and to a time of the user's own."""
    there = places(debug(folder, "--at", "480ms", *["--do", "callback"] * 12))
    assert len(there) == 12 and len({place.split(",")[0] for place in there}) < 12
    words = ["--do", "callback"] * 12 + ["--do", "reverse-callback"] * 11
    assert places(debug(folder, "--at", "480ms", *words))[12:] == there[-2::-1]
    # The one before is not from the window of the first look.
    done = debug(folder, "--at", "480ms", "--do", "reverse-callback", "--do", "callback")
    assert places(done)[1] == there[0] and places(done)[0] != there[0]


def test_what_it_shows_is_what_was_recorded(folder):
    events = read_records(folder / "records.slr").events
    done = debug(
        folder, "--at", "100ms", "--do", "callback running", "--do", "machine", "--do", "print p->pid",
        "--do", "info locals",
    )  # fmt: skip
    ms, cpu, name, pid = re.search(
        r"^(\S+) ms, CPU (\d): ops.running about (\S+)\[(\d+)\]$", done.stdout, re.M
    ).groups()
    first = events[(events["kind"] == Kind.RUN) & (events["t_ns"] >= 100_000_000)][0]
    assert (round(float(ms) * 1e6), int(cpu), int(pid)) == (first["t_ns"], first["cpu"], first["task"])
    assert (
        f"$1 = {pid}" in done.stdout and "optimized out" not in done.stdout and "mlfq.bpf.c:" in done.stdout
    )
    assert re.search(rf"cpu {cpu} .* runs {name}\[{pid}\] .* in running", done.stdout + done.stderr)


def test_a_run_that_failed_is_opened_where_it_failed(tmp_path, folder):
    (tmp_path / "fails.bpf.c").write_text(FAILS)
    run_policies("mixed", [str(tmp_path / "fails.bpf.c")], seeds=1, out=tmp_path / "out")
    (found,) = (tmp_path / "out").rglob("run.json")
    commands = ("print nr", "reverse-callback", "print nr", "reverse-callback", "print nr")
    done = debug(found.parent, *[word for each in commands for word in ("--do", each)])
    (failed,) = re.findall(r"^the policy fails at (\S+) ms, on CPU 0$", done.stdout, re.M)
    assert "fails.bpf.c:11\n" in done.stdout and 'scx_bpf_error("that is enough")' in done.stdout
    # Back to where that callback began, and to the one before.
    assert re.findall(r"^\$\d = (\d+)$", done.stdout, re.M) == ["10", "9", "8"]
    assert places(done)[0].split(" about")[0] == f"{failed} ms, CPU 0: ops.enqueue"


def test_a_policy_that_fails_as_it_is_loaded_is_opened_there(tmp_path, folder):
    (tmp_path / "fails.bpf.c").write_text(
        FAILS.replace("void BPF_STRUCT_OPS(fails_enq", INIT + "void BPF_STRUCT_OPS(fails_enq").replace(
            ".enqueue", ".init = (void *)fails_init, .enqueue"
        )
    )
    run_policies("mixed", [str(tmp_path / "fails.bpf.c")], seeds=1, out=tmp_path / "out")
    (found,) = (tmp_path / "out").rglob("run.json")
    done = debug(found.parent, "--do", "backtrace 4")
    assert "the policy fails at 0 ms" in done.stdout and "in fails_init" in done.stdout, (
        done.stdout + done.stderr
    )


def test_what_it_cannot_open_is_named(tmp_path, folder):
    done = debug(folder, "--at", "20 parsecs")
    assert done.returncode == 2 and "--at" in done.stderr
    done = debug(folder.parent)
    assert done.returncode == 2 and f"runs below it: {folder}" in done.stderr
    run = json.loads((folder / "run.json").read_text())
    for name, change, message in (
        ("uthreads", {"host": "uthreads"}, "does not repeat itself exactly"),
        ("other", {"record_hash": "0" * 64}, "gives other records"),
        ("program", {"program_hash": "1" * 64}, "is in no folder `programs` above it"),
        ("compile", {"source": None, "error": "mine.bpf.c does not compile"}, "mine.bpf.c does not compile"),
    ):
        copy = tmp_path / "runs" / "mlfq" / name
        copy.mkdir(parents=True)
        (copy / "mlfq.bpf.c").write_bytes((folder / "mlfq.bpf.c").read_bytes())
        (copy / "run.json").write_text(json.dumps(run | change))
        programs = tmp_path / "runs" / "programs"
        programs.mkdir(exist_ok=True)
        for program in (folder.parents[1] / "programs").iterdir():
            (programs / program.name).write_bytes(program.read_bytes())
        done = debug(copy, "--do", "machine")
        assert done.returncode != 0 and message in done.stderr and "Traceback" not in done.stderr, done.stderr
    (tmp_path / "damaged").mkdir()
    Path(tmp_path, "damaged", "run.json").write_text('{"host": ')
    done = debug(tmp_path / "damaged")
    assert done.returncode == 2 and "cannot be read" in done.stderr


def test_commands_in_gdb_name_what_is_wrong(folder):
    words = ["callback nothing", "at soon", "at 1000s", "callback", "machine", "at 1ms", "callback"]
    done = debug(folder, *[word for each in words for word in ("--do", each)])
    assert "this policy has no ops.nothing; it has select_cpu, enqueue" in done.stderr
    assert "'soon' is no time; say one such as 20ms" in done.stderr
    assert "the run is over before 1000000 ms" in done.stderr
    assert done.stderr.count("the run is over; go back into it with: at TIME") == 2
    assert len(places(done)) == 1
