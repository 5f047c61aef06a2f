# SPDX-License-Identifier: MIT
"""The launcher runs commands, counts their whole trees, and ends what it started."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "hosts" / "linux" / "launch"
COMMON = ROOT / "hosts" / "common"
SCHED_OTHER, SCHED_FIFO, SCHED_DEADLINE = 0, 1, 6
MS = 1_000_000
#: Uses about as much of a CPU as it is told, in milliseconds, in one process.
BURN = [sys.executable, "-c", "import sys,time\nwhile time.process_time()*1000 < int(sys.argv[1]): pass"]


def command(argv, **settings):
    words = ["command", *(f"{key}={value}" for key, value in settings.items())]
    return [*words, f"argc={len(argv)}", *map(str, argv)]


def request(*commands, timeout_ns=20_000 * MS):
    words = [f"timeout_ns={timeout_ns}", *(word for one in commands for word in one)]
    raw = b"".join(os.fsencode(word) + b"\0" for word in words)
    return b"run %d\n" % len(raw) + raw


class Launcher:
    def __init__(self, program, **who):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **who)

    def ask(self, *commands, **options):
        self.process.stdin.write(request(*commands, **options))
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def run(self, *commands, **options):
        self.ask(*commands, **options)
        return self.answer()["commands"]

    def end(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=20)
        self.process.stdout.close()
        return code


@pytest.fixture(scope="module")
def program(build):
    return build / "hosts" / "linux" / "schedlab-launch"


@pytest.fixture
def launcher(program):
    made = Launcher(program)
    yield made
    assert made.end() == 0


def may_use_realtime() -> bool:
    probe = subprocess.run(["chrt", "-f", "1", "true"], capture_output=True, check=False)
    return probe.returncode == 0


needs_realtime = pytest.mark.skipif(
    not (shutil.which("chrt") and may_use_realtime()), reason="needs CAP_SYS_NICE: run as root"
)


def processes(marker: str) -> list[int]:
    """Pids of processes with this text in their command lines; ours has our pid in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def wait_until(condition, what):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail(what)


def test_exit_codes_and_signals(launcher):
    (good,) = launcher.run(command(["true"], policy=SCHED_OTHER))
    assert (good["failure"], good["exit_code"], good["signal"]) == ("none", 0, 0)
    (bad,) = launcher.run(command(["sh", "-c", "exit 7"], policy=SCHED_OTHER))
    assert bad["exit_code"] == 7
    (killed,) = launcher.run(command(["sh", "-c", "kill -SEGV $$"], policy=SCHED_OTHER))
    assert (killed["exit_code"], killed["signal"]) == (-1, signal.SIGSEGV)


def test_words_of_a_command_arrive_as_they_are(launcher, tmp_path):
    words = ["a b", "", "tab\tnew\nline", "command", "argc=3", "é"]
    code = "import json,sys; print(json.dumps(sys.argv[1:]))"
    output = tmp_path / "out"
    launcher.run(command([sys.executable, "-c", code, *words], policy=0, output=output, folder=tmp_path))
    assert json.loads(output.read_text()) == words


@pytest.mark.parametrize(
    ("settings", "argv", "failure", "error"),
    [
        ({}, ["/no/such/program"], "exec", errno.ENOENT),
        ({"folder": "/no/such/folder"}, ["true"], "folder", errno.ENOENT),
        ({"output": "/no/such/folder/out"}, ["true"], "output", errno.ENOENT),
        ({"cpu": 63}, ["true"], "affinity", errno.EINVAL),
        ({"cpu": 1023}, ["true"], "affinity", errno.EINVAL),
        ({"policy": 77}, ["true"], "scheduler", errno.EINVAL),
    ],
)
def test_what_is_refused_is_named(launcher, settings, argv, failure, error):
    (report,) = launcher.run(command(argv, **({"policy": 0} | settings)))
    assert (report["failure"], report["error"]) == (failure, error)
    # And the launcher goes on.
    (good,) = launcher.run(command(["true"], policy=0))
    assert good["failure"] == "none"


def test_figures_agree_with_gnu_time_for_the_same_execution(launcher, tmp_path):
    gnu_time = shutil.which("time")
    if gnu_time is None:
        pytest.skip("GNU time is missing; to have it: sudo apt-get install time")
    figures = tmp_path / "figures"
    wrapped = [gnu_time, "-f", "%e %U %S %c %w", "-o", figures, *BURN, "300"]
    # GNU time prints hundredths of a second, and is itself in our figures.
    cut_us = 10_000 + 5_000
    # So are its waits for a CPU, before it begins and when it has ended: fewer above the others.
    above = {"policy": SCHED_FIFO, "priority": 1} if may_use_realtime() else {"policy": SCHED_OTHER}
    for _ in range(5):
        (report,) = launcher.run(command(wrapped, **above))
        wall_s, user_s, system_s, involuntary, voluntary = map(float, figures.read_text().split())
        apart_us = (report["end_ns"] - report["start_ns"]) / 1e3 - wall_s * 1e6
        assert apart_us > -cut_us
        if apart_us < cut_us + 10_000:
            break
    assert apart_us < cut_us + 10_000
    own = report["own"]
    assert abs(own["user_us"] + own["system_us"] - (user_s + system_s) * 1e6) < 2 * cut_us
    assert 0 <= own["voluntary_switches"] - voluntary <= 10
    assert 0 <= own["involuntary_switches"] - involuntary <= 10
    assert own["user_us"] + own["system_us"] > 250_000


def test_a_tree_is_counted_whole(launcher):
    burn = " ".join(f"'{word}'" for word in [*BURN, "100"])
    # One child that is waited for, and one that outlives its parent.
    (report,) = launcher.run(command(["sh", "-c", f"{burn}; ({burn} &)"], policy=0))
    assert report["own"]["user_us"] + report["own"]["system_us"] >= 100_000
    assert report["orphans"]["user_us"] + report["orphans"]["system_us"] >= 100_000
    assert report["nr_orphans"] == 1
    assert report["tree_end_ns"] > report["end_ns"]


@needs_realtime
def test_a_realtime_command_that_never_sleeps_is_ended(launcher):
    cpus = os.cpu_count() or 1
    hogs = "; ".join(["while :; do :; done &"] * cpus).replace(";;", ";").replace("&;", "&")
    argv = ["sh", "-c", f"{hogs} while :; do :; done"]
    (report,) = launcher.run(command(argv, policy=SCHED_FIFO, priority=98), timeout_ns=300 * MS)
    assert report["has_timed_out"]
    assert report["own"]["user_us"] > 0
    ran_ns = report["tree_end_ns"] - report["start_ns"]
    # RT throttling may hold back even the launcher, but not for long.
    assert 300 * MS <= ran_ns < 3_000 * MS


@needs_realtime
def test_a_realtime_tree_whose_parent_cannot_run_is_ended(launcher):
    """On one CPU the children spin in front of their parent, which cannot even die."""
    argv = ["sh", "-c", "(while :; do :; done) & (while :; do :; done) & sleep 0.1"]
    settings = {"policy": SCHED_FIFO, "priority": 10, "cpu": 0}
    (report,) = launcher.run(command(argv, **settings), timeout_ns=300 * MS)
    assert report["has_timed_out"]
    assert report["tree_end_ns"] - report["start_ns"] < 3_000 * MS


@needs_realtime
def test_a_command_has_the_class_that_was_asked_for(launcher, tmp_path):
    output = tmp_path / "out"
    code = "import os; print(os.sched_getscheduler(0), os.sched_getparam(0).sched_priority, sorted(os.sched_getaffinity(0)))"
    launcher.run(command([sys.executable, "-c", code], policy=SCHED_FIFO, priority=10, cpu=0, output=output))
    assert output.read_text().split(maxsplit=2) == ["1", "10", "[0]\n"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to raise RLIMIT_RTPRIO and then to give all up")
def test_a_realtime_command_needs_a_watchdog_above_it(program):
    """An ordinary user who may use priorities up to 20 gets a launcher of 20, and commands below."""
    words = ["prlimit", "--rtprio=20", "setpriv", "--bounding-set", "-all", "--inh-caps", "-all", program]
    asked = [command(["true"], policy=SCHED_FIFO, priority=priority) for priority in (19, 20)]
    done = subprocess.run(words, input=b"".join(map(request, asked)), capture_output=True, check=False)
    if b"prlimit: failed" in done.stderr:
        pytest.skip("needs CAP_SYS_RESOURCE, to raise RLIMIT_RTPRIO")
    below, equal = (json.loads(line)["commands"][0] for line in done.stdout.splitlines())
    assert (below["failure"], below["exit_code"]) == ("none", 0)
    assert (equal["failure"], equal["error"]) == ("watchdog", errno.EPERM)


@needs_realtime
def test_a_trial_says_whether_a_command_forks(launcher):
    marker = f"41.{os.getpid():07d}"
    (forks,) = launcher.run(command(["sh", "-c", f"sleep {marker}; true"], policy=0, trial=1))
    assert forks["forks"]
    assert not processes(marker), "the trial's tree is ended at once"
    (alone,) = launcher.run(command(["sleep", "0.01"], policy=0, trial=1))
    assert not alone["forks"]
    assert alone["exit_code"] == 0
    deadline = {"policy": SCHED_DEADLINE, "runtime_ns": 5 * MS, "deadline_ns": 10 * MS, "period_ns": 10 * MS}
    (burnt,) = launcher.run(command([*BURN, "50"], **deadline))
    assert (burnt["failure"], burnt["exit_code"]) == ("none", 0)
    # Half of a CPU: 50 ms of work take about twice as long.
    assert burnt["end_ns"] - burnt["start_ns"] > 80 * MS


def test_what_runs_beside_ends_with_the_measured_command(launcher):
    first, beside = launcher.run(
        command(["sleep", "0.1"], policy=0), command(["sh", "-c", "while :; do :; done"], policy=0)
    )
    assert first["exit_code"] == 0
    assert beside["was_ended"]
    assert beside["own"]["user_us"] > 0


def start_a_stubborn_tree(launcher, marker):
    """A command that ignores signals, with a grandchild in a session of its own."""
    script = f"trap '' INT TERM HUP; setsid sh -c 'trap \"\" INT TERM HUP; sleep {marker}; true' & wait"
    launcher.ask(command(["sh", "-c", script], policy=0))
    wait_until(lambda: processes(f"sleep\0{marker}"), "the tree did not start")


def test_the_end_of_input_ends_the_tree(program):
    launcher = Launcher(program)
    marker = f"31.{os.getpid():07d}"
    start_a_stubborn_tree(launcher, marker)
    launcher.process.stdin.close()
    assert launcher.answer()["commands"][0]["was_ended"]
    assert launcher.end() == 0
    assert not processes(marker)


def test_a_killed_launcher_leaves_nothing_behind(program):
    launcher = Launcher(program)
    marker = f"27.{os.getpid():07d}"
    start_a_stubborn_tree(launcher, marker)
    launcher.process.kill()
    assert launcher.end() == -signal.SIGKILL
    wait_until(lambda: not processes(marker), "the tree outlived its launcher")


def test_a_killed_keeper_leaves_nothing_behind_and_is_told(launcher):
    """Its command had no figures, and what the command had forked went on for ever."""
    start_a_stubborn_tree(launcher, "26.4575")
    # The launcher's only child; pgrep is not everywhere.
    (keeper,) = Path(f"/proc/{launcher.process.pid}/task/{launcher.process.pid}/children").read_text().split()
    os.kill(int(keeper), signal.SIGKILL)
    (report,) = launcher.answer()["commands"]
    assert report["failure"] == "keeper"
    assert not processes("26.4575")
    # And the launcher goes on.
    (good,) = launcher.run(command(["true"], policy=0))
    assert (good["failure"], good["exit_code"]) == ("none", 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a program that becomes root")
def test_a_tree_of_another_user_is_given_up_and_told(program, tmp_path, need):
    """As sudo's: it may not be killed, and its end was waited for for ever."""
    with tempfile.TemporaryDirectory(prefix="schedlab-launch-") as name:
        folder, source = Path(name), tmp_path / "become.c"
        folder.chmod(0o755)
        source.write_text(
            "#include <unistd.h>\nint main(void) { if (setuid(0)) return 3; pause(); return 0; }\n"
        )
        subprocess.run([need("cc"), "-o", folder / "become", source], check=True)
        (folder / "become").chmod(0o4755)
        shutil.copy(program, folder / "launch")
        # Another nice value than ours takes a privilege.
        ours = {"policy": 0, "nice": os.getpriority(os.PRIO_PROCESS, 0)}
        weak = Launcher(folder / "launch", user=65534)
        try:
            (left,) = weak.run(command([folder / "become"], **ours), timeout_ns=100 * MS)
            (good,) = weak.run(command(["true"], **ours))
        finally:
            for pid in processes(str(folder / "become")):
                os.kill(pid, signal.SIGKILL)
            weak.end()
        if left["exit_code"] == 3:
            pytest.skip("no program becomes root here (nosuid)")
        assert (left["failure"], left["error"], left["has_timed_out"]) == ("survivor", errno.EPERM, True)
        assert (good["failure"], good["exit_code"]) == ("none", 0)


def test_a_killed_command_is_no_loss(launcher):
    sleep = ["sleep", f"16.{os.getpid():07d}"]
    launcher.ask(command(sleep, policy=0))
    wait_until(lambda: processes("\0".join(sleep)), "it did not start")
    (pid,) = processes("\0".join(sleep))
    os.kill(pid, signal.SIGKILL)
    (report,) = launcher.answer()["commands"]
    assert report["signal"] == signal.SIGKILL


def test_damaged_requests_are_refused(program, tmp_path, need):
    """Cut, changed and random requests, under sanitizers: an answer or an end."""
    checked = tmp_path / "launch"
    subprocess.run(
        [need("cc"), "-std=gnu11", "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover",
         f"-I{COMMON}", "-o", checked, *sorted(SOURCES.glob("*.c")), COMMON / "descendants.c"],
        check=True,
    )  # fmt: skip
    draw = random.Random(5)
    whole = request(command(["/no/such"], policy=0, nice=-5, folder="/"), command(["/no/such"], policy=0))
    for _ in range(60):
        raw = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
        raw = raw[: draw.randrange(1, len(raw) + 1)]
        done = subprocess.run([checked], input=bytes(raw), capture_output=True, timeout=20, check=False)
        assert done.returncode == 0, (bytes(raw), done.stderr.decode())
        assert not re.search(rb"runtime error|Sanitizer", done.stderr), done.stderr.decode()
        for line in done.stdout.splitlines():
            assert {"wrong"} == set(json.loads(line)) or "commands" in json.loads(line)
