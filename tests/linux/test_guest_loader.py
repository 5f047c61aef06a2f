# SPDX-License-Identifier: MIT
"""`--loader`: a scheduler's own program loads it in the guest, and the workload is played under it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from schedlab.errors import NotFoundError, PolicyError, SchedlabError, UsageError
from schedlab.hosts.guest import build as guest_build
from schedlab.policy.bpf import compile_object
from schedlab.policy.loader import loader_as_policy
from schedlab.records.file import Kind, Overhead, read_records
from schedlab.runs.run import make_plan, run_plan

#: A hog that is preempted and a sleeper that wakes up under it: two turns are never one.
WORKLOAD = """
[workload]
title = "A hog and a sleeper"
question = "Who decides?"
[[task]]
name = "hog"
phases = [{run = "120ms"}]
[[task]]
name = "sleeper"
phases = [{loop = 20, do = [{sleep = "7ms"}, {run = "500us"}]}]
"""
#: What programs of others do wrong: `never` loads nothing, `stays` does not mind Ctrl-C, `leaves` ends amid the
#: workload. `busy` needs the CPU itself, as a scheduler does that decides in user space.
PROGRAM = r"""
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t load(char **argv)
{
	pid_t pid = fork();

	if (!pid) {
		signal(SIGINT, SIG_DFL);
		execv(argv[0], argv);
		_exit(127);
	}
	return pid;
}

static void work_and_sleep(void)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	struct timespec begun, now;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begun.tv_sec) * 1000000000L + now.tv_nsec - begun.tv_nsec < 1000000);
	nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	pid_t pid;

	printf("this is %s\n", argv[1]);
	fflush(stdout);
	if (!strcmp(argv[1], "never"))
		pause();
	if (!strcmp(argv[1], "stays"))
		signal(SIGINT, SIG_IGN);
	pid = load(argv + 2);
	if (!strcmp(argv[1], "leaves")) {
		usleep(900000);
		kill(pid, SIGINT);
		waitpid(pid, NULL, 0);
		return 3;
	}
	while (strcmp(argv[1], "busy"))
		pause();
	for (;;)
		work_and_sleep();
}
"""
#: What the error says, by the word of the program; and its kind.
WRONG = {
    "never": r"programs had loaded no scheduler after 30 s of the guest's time, and was killed; it said last:\nthis is never$",
    "stays": r"programs had not ended 10 s after SIGINT, and was killed; it said last:\n",
    "leaves": r"programs ended with status 3 before the workload did, whose tasks then ran under Linux's own scheduler",
}  # fmt: skip


def do(out, workload, loaders, *, policies=(), **more) -> dict:
    words = [*policies, *(f"loader:{loader}" for loader in loaders)]
    runs = run_plan(make_plan([str(workload)], words, out, host="guest", **more)).runs
    return {run["policy"]: run for run in runs}


@pytest.fixture(scope="module")
def workload(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("loader") / "two.toml"
    path.write_text(WORKLOAD)
    return path


@pytest.fixture(scope="module")
def programs(workload) -> Path:
    path = workload.parent / "programs"
    subprocess.run(["cc", "-o", path, "-x", "c", "-"], input=PROGRAM, text=True, check=True)
    return path


@pytest.fixture(scope="module")
def load(guest_parts, workload, root, bad_policies) -> dict[str, str]:
    """Commands that load a policy of ours, as a scheduler's own program does."""
    program = shutil.copy(guest_build.build_program("load", guest_parts.libbpf), workload.parent / "load")
    found = {}
    for source in (
        root / "policies" / "rr.bpf.c",
        *(bad_policies / f"{n}.bpf.c" for n in ("stalls", "no_null_check")),
    ):
        file = shutil.copy(compile_object(source), workload.parent / source.name.replace(".bpf.c", ".o"))
        found[source.name.partition(".")[0]] = f"{program} {file}"
    return found


@pytest.fixture(scope="module")
def runs(workload, programs, load):
    return do(
        workload.parent / "out",
        workload,
        [load["rr"], load["stalls"], load["no_null_check"], f"{programs} never"]
        + [f"{programs} {word} {load['rr']}" for word in ("stays", "leaves", "busy")],
        policies=["rr"],
    )


def of(runs, word: str) -> dict:
    (found,) = (run for name, run in runs.items() if re.search(rf"\b{word}\b", name) and "loader:" in name)
    return found


@pytest.mark.full
def test_the_scheduler_of_a_program_has_records_and_metrics(runs):
    run = next(run for name, run in runs.items() if re.fullmatch(r"loader:load \S*/rr\.o", name))
    assert (run["status"], run["error"], run["consistency"]) == ("ok", None, "ok")
    assert run["loader"]["ops"] == "rr" and run["loader"]["command"][1].endswith("/rr.o")
    assert run["metrics"]["wakeups"] == runs["rr"]["metrics"]["wakeups"] == 20
    assert run["metrics"]["busy_ns"] == pytest.approx(runs["rr"]["metrics"]["busy_ns"], rel=0.02)
    folder = Path(run["directory"])
    assert "attached" in (folder / "policy.log").read_text()
    assert json.loads((folder / "run.json").read_text())["loader"] == run["loader"]


@pytest.mark.full
def test_what_the_program_itself_computes_is_no_work_of_the_workload(runs):
    busy, quiet = of(runs, "busy"), runs["rr"]
    assert (busy["status"], busy["consistency"]) == ("ok", "ok")
    assert busy["metrics"]["busy_ns"] == pytest.approx(quiet["metrics"]["busy_ns"], rel=0.05)
    assert busy["metrics"]["makespan_ns"] > quiet["metrics"]["makespan_ns"] + 3_000_000
    # A turn of it is a turn: the task before it has been stopped.
    events = read_records(Path(busy["directory"]) / "records.slr").events
    long = events[(events["kind"] == Kind.OVERHEAD) & (events["arg"] > 900_000)]
    assert len(long) > 5 and not (long["flags"] == Overhead.STOLEN).any()


@pytest.mark.full
@pytest.mark.parametrize("word", WRONG)
def test_a_program_that_does_not_do_its_part(runs, word):
    run = of(runs, word)
    assert (run["status"], run["error_kind"], run["metrics"]) == ("failed", "policy", {})
    assert re.search(WRONG[word], run["error"]), run["error"]


@pytest.mark.full
def test_a_program_that_ends_before_it_has_loaded_anything(runs):
    run = of(runs, "no_null_check")
    assert (run["status"], run["error_kind"]) == ("failed", "policy")
    assert re.search(
        r"load ended with status 1 before it had loaded a scheduler; it said last:", run["error"]
    )
    assert "invalid mem access 'map_value_or_null'" in run["error"]


@pytest.mark.full
def test_a_scheduler_that_the_watchdog_ends(runs):
    run = of(runs, "stalls")
    assert (run["status"], run["error_kind"]) == ("failed", "stall")
    assert re.search(r"^runnable task stall: .* failed to run for \d\.\d+s", run["error"])


# ---- without a guest -----------------------------------------------------------


def test_other_hosts_name_the_one_that_takes_it(workload, tmp_path):
    why = r"--loader ./scx_x -f: .* which --host sim has not; hosts that have it: guest"
    with pytest.raises(UsageError, match=why):
        make_plan([str(workload)], ["loader:./scx_x -f"], tmp_path)


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        (None, 0, "no such program; give its path"),
        (b"#!/bin/sh\n", 0o755, "is no program for Linux on x86-64.*not a script"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\xb7\0", 0o755, "is no program for Linux on x86-64"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\x3e\0", 0o755, "is cut short"),
        (b"", 0o644, "is not executable; chmod"),
    ],
)
def test_what_is_no_program_is_refused(content, mode, why, tmp_path):
    if content is not None:
        (tmp_path / "x").write_bytes(content)
        (tmp_path / "x").chmod(mode)
    with pytest.raises(SchedlabError, match=why):
        loader_as_policy(f"loader:{tmp_path}/x")


def test_words_that_say_nothing(tmp_path):
    for words, why in (
        ("", "--loader is empty"),
        ("'a", "No closing quotation"),
        ("no-such-program", "no such program"),
    ):
        with pytest.raises((UsageError, NotFoundError), match=why):
            loader_as_policy(f"loader:{words}")


def test_a_library_that_is_not_there_is_named(tmp_path):
    (tmp_path / "l.c").write_text("int l(void) { return 0; }")
    (tmp_path / "m.c").write_text("int l(void); int main(void) { return l(); }")
    subprocess.run(["cc", "-shared", "-o", "libl.so", "l.c"], cwd=tmp_path, check=True)
    subprocess.run(["cc", "-o", "m", "m.c", "-L.", "-ll", "-Wl,-rpath,."], cwd=tmp_path, check=True)
    (tmp_path / "libl.so").unlink()
    with pytest.raises(PolicyError, match=r"m: the library libl.so is not found; install it here"):
        loader_as_policy(f"loader:{tmp_path}/m")


def test_what_a_program_needs_goes_with_it(programs, tmp_path):
    (tmp_path / "config").write_text("x")
    found = loader_as_policy(f"loader:{programs} never --config={tmp_path}/config f:{tmp_path}/config")
    names = [file.name for file in found.loader.files]
    assert names.count("config") == 1 and names[0] == "programs" and "libc.so.6" in names
    assert any(name.startswith("ld-") for name in names)
    assert found.policy.name.startswith("loader:programs never --config=")
    other = loader_as_policy(f"loader:{programs} never")
    (tmp_path / "config").write_text("y")
    again = loader_as_policy(f"loader:{programs} never --config={tmp_path}/config f:{tmp_path}/config")
    assert len({found.policy_hash, other.policy_hash, again.policy_hash}) == 3
