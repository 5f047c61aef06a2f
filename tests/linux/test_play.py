# SPDX-License-Identifier: MIT
"""schedlab-play: verbs do what they say, figures are right, and nothing is left behind."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from schedlab.hosts.linux.host import read_played
from schedlab.program.compiler import compile_workload
from schedlab.workload.spec import parse_workload

HEAD = '[workload]\ntitle = "t"\nquestion = "q"\njitter = "0ms"\ntick = "4ms"\n'
EVERY_VERB = (
    HEAD
    + """
[[lock]]
name = "l"

[[pipe]]
name = "p"
capacity = "4KiB"

[[barrier]]
name = "b"
parties = 2

[[condition]]
name = "c"

[[task]]
name = "parent"
phases = [{spawn = "child"}, {spawn = "child"}, "wait", {barrier = "b"}, {signal = "c"}]

[[task]]
name = "child"
arrival = "spawned"
count = 2
phases = [{loop = 3, do = [{lock = "l"}, {run = "1ms"}, {unlock = "l"}, "yield"]}]

[[task]]
name = "waiter"
phases = [{barrier = "b"}, {work = {kernel = "pi", count = 100000}}]

[[task]]
name = "sender"
phases = [{send = {pipe = "p", bytes = "100KiB"}}]

[[task]]
name = "receiver"
arrival = "20ms"
phases = [{recv = {pipe = "p", bytes = "100KiB"}}, {write = {bytes = "8KiB", chunk = "1KiB", sync = true}},
          {read = {bytes = "8KiB", chunk = "4KiB"}}]

[[task]]
name = "sleeper"
arrival = "5ms"
phases = [{sleep = "10ms"}, {run = "3ms"}]
"""
)
SPIN = HEAD + '[[task]]\nname = "spin"\ncount = 2\nphases = [{loop = "forever", do = [{run = "1ms"}]}]\n'
QUICK_AND_SLOW = (
    HEAD
    + """
[[task]]
name = "quick"
phases = [{run = "1ms"}]

[[task]]
name = "slow"
phases = [{sleep = "300s"}]
"""
)


@pytest.fixture(scope="module")
def player(build):
    return build / "hosts" / "linux" / "schedlab-play"


@pytest.fixture
def command(player, tmp_path):
    """Words that play a workload, and where the result goes."""

    def words(text, *options, folder=tmp_path):
        program = tmp_path / "w.slprog"
        program.write_bytes(compile_workload(parse_workload(text), seed=1).data)
        result = Path(folder) / "tasks.jsonl"
        return [player, "--program", program, "--result", result, "--folder", folder, *options], result

    return words


#: What kept the tasks from time 0 passes: so often is begun again, which hosts/linux/host.py does, too.
LATE_TRIES = 10


def has_a_line(result: Path) -> bool:
    """Whether a task has ended, and nobody else."""
    return result.exists() and [task["name"] for task in read_played(result).tasks] == ["quick"]


def was_late(result: Path) -> bool:
    run = read_played(result).run
    return run is not None and run["error_kind"] == "late"


def play(command, text, *options, **settings):
    words, result = command(text, *options, **settings)
    for _ in range(LATE_TRIES):
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        if not was_late(result):
            break
    return done, read_played(result)


def begun(words, result: Path, is_so, what: str, **settings) -> subprocess.Popen:
    """A player that runs, and of which `is_so` is true."""
    for _ in range(LATE_TRIES):
        process = subprocess.Popen(words, **settings)
        wait_until(lambda process=process: is_so(process) or process.poll() is not None, what)
        if is_so(process):
            return process
        process.communicate()
        assert was_late(result), read_played(result)
    pytest.fail(f"{what}: this machine is too busy")


def gone(marker: Path) -> bool:
    """Whether no process has this path in its command line any more."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(marker) in path.read_bytes():
                return False
        except OSError:
            continue
    return True


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def wait_until(condition, what):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail(what)


@pytest.mark.parametrize("options", [(), ("--threads",)])
def test_every_verb_does_what_it_says(command, options):
    done, played = play(command, EVERY_VERB, *options)
    assert done.returncode == 0, done.stderr
    by_name = {task["name"]: task for task in played.tasks}
    parent, waiter, sender, receiver, sleeper = (
        by_name[n] for n in ["parent", "waiter", "sender", "receiver", "sleeper"]
    )
    first, second = (task for task in played.tasks if task["name"] == "child")
    assert played.run["nr_ended"] == 7
    for task in played.tasks:
        assert task["arrival_ns"] <= task["first_run_ns"] <= task["end_ns"] <= played.run["end_ns"]
    # Who computes has had at least that much of a CPU.
    assert min(first["run_ns"], second["run_ns"], sleeper["run_ns"]) >= 3_000_000
    assert parent["arrival_ns"] == 0
    assert first["arrival_ns"] >= parent["first_run_ns"], "forked by its parent"
    assert parent["end_ns"] >= max(first["end_ns"], second["end_ns"]), "waits for its children"
    assert waiter["run_ns"] > 100_000, "pi is really computed"
    assert sender["end_ns"] > 20_000_000, "the pipe holds less than it sends"
    assert receiver["arrival_ns"] == 20_000_000
    assert sleeper["end_ns"] >= 5_000_000 + 10_000_000 + 3_000_000
    # The lock kept the children apart, so together they took what both computed.
    began_ns = min(first["first_run_ns"], second["first_run_ns"])
    assert max(first["end_ns"], second["end_ns"]) - began_ns >= 6_000_000
    used_us = played.run["user_us"] + played.run["system_us"]
    assert used_us >= sum(task["run_ns"] for task in played.tasks) / 1000 * 0.99
    if options:
        assert len({task["tid"] for task in played.tasks}) == 7
    if played.run["file_system"] != "tmpfs":
        assert receiver["voluntary_switches"] >= 8, "each synchronous write waits for the device"


def test_a_condition_wakes_who_waited_longest_with_its_lock(command):
    """The signaller goes on when the one has been woken whose turn it is, or waits until the horizon.

    Who waits has given the lock to whom it started, so the order is no matter of time.
    """
    names = ("first", "second", "third", "signaller")
    text = HEAD.replace('tick = "4ms"\n', 'tick = "4ms"\nhorizon = "20s"\n')
    text += '[[lock]]\nname = "l"\n[[condition]]\nname = "c"\n'
    for i, (name, following) in enumerate(itertools.pairwise(names)):
        arrival = 'arrival = "spawned"\n' if i else ""
        text += (
            f'[[pipe]]\nname = "{name}"\n[[task]]\nname = "{name}"\n{arrival}'
            f'phases = [{{lock = "l"}}, {{spawn = "{following}"}}, {{await = {{condition = "c", lock = "l"}}}}, '
            f'{{unlock = "l"}}, {{send = {{pipe = "{name}", bytes = 1}}}}]\n'
        )
    turns = ", ".join(
        f'{{lock = "l"}}, {{signal = "c"}}, {{unlock = "l"}}, {{recv = {{pipe = "{name}", bytes = 1}}}}, '
        '{sleep = "20ms"}, {spawn = "mark"}'
        for name in names[:3]
    )
    text += f'[[task]]\nname = "signaller"\narrival = "spawned"\nphases = [{turns}]\n'
    text += '[[task]]\nname = "mark"\narrival = "spawned"\nphases = [{run = "1us"}]\n'
    done, played = play(command, text)
    assert done.returncode == 0, done.stderr
    assert played.run["nr_ended"] == 7, "another one was woken first"
    _, second, third, _, *marks = played.tasks
    assert second["end_ns"] >= marks[0]["arrival_ns"], "one signal wakes one"
    assert third["end_ns"] >= marks[1]["arrival_ns"], "one signal wakes one"


def test_figures_agree_with_gnu_time_for_the_same_execution(command, tmp_path):
    gnu_time = shutil.which("time")
    if gnu_time is None:
        pytest.skip("GNU time is missing; to have it: sudo apt-get install time")
    text = HEAD + '[[task]]\nname = "hog"\ncount = 3\nphases = [{run = "80ms"}, {sleep = "5ms"}]\n'
    words, result = command(text)
    figures = tmp_path / "figures"
    subprocess.run([gnu_time, "-f", "%e %U %S %w", "-o", figures, *words], check=True)
    played = read_played(result)
    wall_s, user_s, system_s, voluntary = map(float, figures.read_text().split())
    used_s = (played.run["user_us"] + played.run["system_us"]) / 1e6
    assert 0.24 <= used_s <= 0.30
    # `time` counts our making of the tasks, too: calibration takes some 25 ms.
    assert used_s - 0.02 <= user_s + system_s <= used_s + 0.12
    assert played.run["end_ns"] / 1e9 <= wall_s + 0.01
    assert 3 <= played.run["voluntary_switches"] <= voluntary


#: Writes a byte for each look at a task's own CPU clock.
COUNT_LOOKS = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (clock == CLOCK_THREAD_CPUTIME_ID) {
        int fd = open(getenv("LOOKS"), O_WRONLY | O_APPEND | O_CREAT, 0600);

        if (write(fd, "x", 1) != 1)
            abort();
        close(fd);
    }
    return (int)syscall(SYS_clock_gettime, clock, t);
}
"""


def test_a_run_is_not_measured_by_what_would_end_slices(command, tmp_path):
    """Linux does its accounts when a task looks at its CPU clock, and preempts whose slice is used."""
    source, library = tmp_path / "looks.c", tmp_path / "looks.so"
    source.write_text(COUNT_LOOKS)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    n_looks = []
    for rounds in (1, 60):
        looks = tmp_path / f"looks-{rounds}"
        text = HEAD + f'[[task]]\nname = "t"\nphases = [{{loop = {rounds}, do = [{{run = "1ms"}}]}}]\n'
        words, result = command(text)
        subprocess.run(
            words, env={**os.environ, "LD_PRELOAD": str(library), "LOOKS": str(looks)}, check=True, timeout=60
        )
        assert read_played(result).tasks[0]["run_ns"] >= rounds * 1_000_000 - 1_000
        n_looks.append(looks.stat().st_size)
    # The last one, at the end, may find that something is left to do.
    assert n_looks[0] > 0 and n_looks[1] <= n_looks[0] + 3


def test_who_is_preempted_gets_all_that_it_asked_for(command):
    text = HEAD + '[[task]]\nname = "hog"\ncount = 4\nphases = [{run = "40ms"}, "yield", {run = "20ms"}]\n'
    words, result = command(text)
    subprocess.run(["taskset", "-c", str(min(os.sched_getaffinity(0))), *words], check=True, timeout=60)
    tasks = read_played(result).tasks
    assert len(tasks) == 4
    assert all(task["involuntary_switches"] > 0 for task in tasks), "they were on one CPU"
    assert min(task["run_ns"] for task in tasks) >= 60_000_000 - 1_000


def test_the_horizon_ends_who_never_ends(command):
    text = SPIN.replace('tick = "4ms"\n', 'tick = "4ms"\nhorizon = "60ms"\n')
    for options in ((), ("--threads",)):
        done, played = play(command, text, *options)
        assert done.returncode == 0, done.stderr
        assert played.run["end_ns"] == 60_000_000
        assert [task["end_ns"] for task in played.tasks] == [None, None]
        assert sum(task["run_ns"] for task in played.tasks) > 0


def test_a_killed_task_ends_the_run_and_is_named(command, tmp_path):
    words, result = command(QUICK_AND_SLOW)
    process = begun(
        words, result, lambda _: has_a_line(result), "quick never ended", stderr=subprocess.PIPE, text=True
    )
    (slow,) = children_of(process.pid)
    os.kill(slow, signal.SIGKILL)
    _, said = process.communicate(timeout=30)
    played = read_played(result)
    assert process.returncode == 1
    assert f"slow[{slow}] was killed by signal 9" in said
    assert (played.run["error_kind"], played.run["fault_task"]) == ("crash", 2)
    assert played.tasks[0]["end_ns"] is not None
    assert (played.tasks[1]["end_ns"], played.tasks[1]["signal"]) == (None, signal.SIGKILL)


def test_a_killed_runner_leaves_what_had_ended_and_no_task(command, tmp_path):
    words, result = command(QUICK_AND_SLOW)
    process = begun(words, result, lambda _: has_a_line(result), "quick never ended")
    process.kill()
    process.wait()
    wait_until(lambda: gone(words[2]), "a task outlived its runner")
    played = read_played(result)
    assert played.run is None
    assert [task["name"] for task in played.tasks] == ["quick"]


def mount(folder: Path, kib: int) -> None:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", folder], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("needs root, to mount a small disk")


def test_a_full_disk_is_named_and_what_was_written_can_be_read(command, tmp_path):
    small = tmp_path / "small"
    mount(small, 64)
    try:
        text = HEAD + '[[task]]\nname = "writer"\nphases = [{write = {bytes = "1MiB", chunk = "4KiB"}}]\n'
        done, _ = play(command, text, folder=small)
        assert done.returncode == 1
        assert "No space left on device; make room" in done.stderr
        # Room for the results is taken first, so that nobody can fill the disk under them.
        many = HEAD + '[[task]]\nname = "many"\ncount = 200\nphases = [{sleep = "400ms"}]\n'
        words, result = command(many, folder=small)
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert f"{result}: no room for a line of each of 200 tasks: No space left on device" in done.stderr
        words, result = command(many.replace("200", "50"), folder=small)
        for _ in range(LATE_TRIES):
            (small / "full").unlink(missing_ok=True)
            process = begun(words, result, lambda process: children_of(process.pid), "no task was made")
            with pytest.raises(OSError, match="No space left"):
                (small / "full").write_bytes(b"x" * 100_000)
            status = process.wait(timeout=60)
            if not was_late(result):
                break
        assert status == 0
        assert [task["end_ns"] is not None for task in read_played(result).tasks] == [True] * 50
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_what_a_device_refuses_is_explained(command, tmp_path):
    text = (
        HEAD + '[[task]]\nname = "odd"\nphases = [{read = {bytes = "999B", chunk = "999B", direct = true}}]\n'
    )
    done, played = play(command, text)
    assert done.returncode == 1
    assert "O_DIRECT" in done.stderr
    good = (
        HEAD
        + '[[task]]\nname = "even"\nphases = [{read = {bytes = "64KiB", chunk = "4KiB", direct = true}}, '
        '{write = {bytes = "64KiB", chunk = "4KiB", direct = true}}]\n'
    )
    done, played = play(command, good)
    if played.run["file_system"] in ("ext4", "xfs", "btrfs"):
        assert done.returncode == 0, done.stderr


def test_wrong_use_is_refused(player, tmp_path):
    for words, problem in (
        ([], "--program is missing"),
        (["--program", "x", "--result", tmp_path / "r", "--what"], "'--what' is unknown"),
        (["--program", "/no/such", "--result", tmp_path / "r"], "No such file"),
        (["--program", "x", "--result", "/no/such/folder/r"], "No such file"),
    ):
        done = subprocess.run([player, *words], capture_output=True, text=True, check=False)
        assert done.returncode in (1, 2)
        assert problem in done.stderr
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"SLPROG\0\1" + b"\xff" * 200)
    done = subprocess.run(
        [player, "--program", damaged, "--result", tmp_path / "r"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert json.loads((tmp_path / "r").read_text())["error_kind"] == "usage"
