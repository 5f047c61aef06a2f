# SPDX-License-Identifier: MIT
"""`schedlab load`: the loader in a real kernel, and its front in this one's absence.

This machine's kernel may have no sched_ext, so the loader itself, the same static
program, is run in the guest; what it said there is then played to the command.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linux.linux_settings import settings_of_linux
from schedlab.hosts.guest import build as guest_build
from schedlab.hosts.guest import policies as guest
from schedlab.hosts.guest.frames import Answer, read_frames, write_frames
from schedlab.hosts.linux import load
from schedlab.hosts.linux.recorder import unavailable_reason
from schedlab.policy.bpf import compile_object

#: What is run in the guest: policy, words after the object, how long.
RUNS = {
    "held": ("mlfq", ("--set", "quantum_ns=3000000", "--every-ms", "40"), 400),
    "silent": ("rr", ("--every-ms", "40", "--heartbeat-ms", "120"), 2000),
    "partial": ("rr", ("--partial", "--every-ms", "40"), 200),
    "unknown knob": ("rr", ("--set", "slise_ns=1"), 50),
    "thrown out": ("stalls", ("--every-ms", "100"), 3000),
    "refused": ("no_null_check", (), 50),
    "wrong words": ("rr", ("--set", "slice_ns"), 50),
}


@pytest.fixture(scope="module")
def in_guest(guest_parts, root, bad_policies):
    """What the loader printed and its exit status, by run; one machine for all."""
    loader = guest_build.build_program("load", guest_parts.libbpf)
    places = {
        name: bad_policies if (bad_policies / f"{name}.bpf.c").exists() else root / "policies"
        for name, _, _ in RUNS.values()
    }
    tasks = [
        guest.GuestTask(
            run,
            compile_object(places[name] / f"{name}.bpf.c").read_bytes(),
            command=("/load", "POLICY", *words),
            hold_ms=hold_ms,
        )
        for run, (name, words, hold_ms) in RUNS.items()
    ]
    answers = guest.run_guest(tasks, files={"/load": loader.read_bytes()})
    return {answer.name: (answer.output, answer.status) for answer in answers}


def said(output: bytes) -> tuple[list[str], Answer]:
    frames, answer = read_frames(output), Answer("policy")
    answer.read(frames)
    return [name for name, _ in frames], answer


@pytest.mark.full
def test_policy_is_held_until_the_loader_is_interrupted(in_guest):
    output, status = in_guest["held"]
    names, answer = said(output)
    assert status == 0
    assert names[-2:] == ["ended", "kernel"] and "attached" in names
    assert names.count("counts") >= 5
    assert answer.ended_by == "by us" and answer.error is None
    assert answer.disabled_reason == "unregistered from user space"
    calls, ns = answer.counts["mlfq_enqueue"]
    assert 0 < calls < 100_000 and 0 < ns < 400_000_000
    assert "SCX_EV_SELECT_CPU_FALLBACK" in answer.events


@pytest.mark.full
def test_without_a_heartbeat_the_policy_is_unloaded(in_guest):
    """Nothing comes in the guest; each count says what time it is, in units of 40 ms."""
    names, answer = said(in_guest["silent"][0])
    assert "silent" in names and answer.ended_by == "by us" and 120 <= answer.silent_ms < 500
    assert 2 <= names.count("counts") <= 5


@pytest.mark.full
def test_partial_leaves_the_others_alone(in_guest):
    """Nobody in the guest asks for the class, so nothing is enqueued."""
    _, answer = said(in_guest["partial"][0])
    assert answer.is_attached and answer.error is None
    assert answer.counts["rr_enqueue"] == (0, 0)


@pytest.mark.full
def test_loader_says_what_is_wrong(in_guest):
    output, status = in_guest["thrown out"]
    _, answer = said(output)
    assert status == 1 and answer.error_kind == "stall"
    assert "stalls.bpf.c:7" in answer.error
    output, status = in_guest["refused"]
    assert status == 1 and "invalid mem access" in said(output)[1].error
    output, status = in_guest["unknown knob"]
    assert status == 1 and "no knob slise_ns" in said(output)[1].error
    output, status = in_guest["wrong words"]
    assert status == 2 and b"--set needs KNOB=VALUE" in output


# ---- the command, with a loader that plays what was said ---------------------


PLAYER = """#!{python}
import os, select, sys
frames = open({frames!r}, "rb").read()
open({words!r}, "w").write(" ".join(sys.argv[1:]))
if "--image" in sys.argv:
    open({words!r} + ".image", "wb").write(open(sys.argv[sys.argv.index("--image") + 1], "rb").read())
end = frames.index(b"\\nended ") + 1 if {waits} else len(frames)
counts = frames.index(b"counts ") if {waits} else end
sys.stdout.buffer.write(frames[:counts])
while True:
    sys.stdout.buffer.write(frames[counts:end])
    sys.stdout.flush()
    # As the real one: again and again, until its input ends.
    if not {waits} or (select.select([sys.stdin], [], [], 0.02)[0] and not os.read(0, 4096)):
        break
sys.stdout.buffer.write(frames[end:])
"""
RECORDED = {
    "program": b"rr_enqueue 30\nprocessed 30 insns",
    "loaded": b"",
    "attached": b"",
    "counts": b"call rr_enqueue 120 36000\nevent SCX_EV_ENQ_SKIP_EXITING 2\n",
    "ended": b"by us",
    "kernel": b'sched_ext: BPF scheduler "rr" enabled\n'
    b'sched_ext: BPF scheduler "rr" disabled (unregistered from user space)\n',
}


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Function that starts `schedlab load`, with a loader that plays frames."""
    started = []

    def start(*words, frames=RECORDED, waits=True):
        (tmp_path / "frames").write_bytes(write_frames(frames))
        player = tmp_path / "player"
        player.write_text(
            PLAYER.format(
                python=sys.executable,
                frames=str(tmp_path / "frames"),
                words=str(tmp_path / "words"),
                waits=waits,
            )
        )
        player.chmod(0o755)
        code = (
            "from schedlab.hosts.linux import load; from schedlab.cli import app; from pathlib import Path\n"
            f"load.prepare_loader = lambda: Path({str(player)!r})\n"
            "app.main()"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, "load", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def may_guard(needs_clang, build):
    if reason := unavailable_reason():
        pytest.skip(reason)


@pytest.fixture
def needs_clang():
    if guest.unavailable_reason():
        pytest.skip(guest.unavailable_reason())


def test_interrupted_command_unloads_and_says_why_it_ended(command, needs_clang, tmp_path):
    process = command("rr", "--set", "slice_ns=3ms", "--partial")
    head = process.stdout.readline()
    assert "rr schedules tasks of the class SCHED_EXT; Ctrl-C unloads it" in head
    while "rr_enqueue" not in (line := process.stdout.readline()):
        assert line
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert re.search(r"unloaded after \d+\.\d s, by us: unregistered from user space", out)
    words = (tmp_path / "words").read_text()
    assert "--set slice_ns=3000000" in words and "--partial" in words.split()


def test_a_launch_file_is_the_kernels_too(command, needs_clang, tmp_path, root):
    """Of this machine, under the knobs; what its launch() writes, too, and what decides in user space is refused."""
    source = tmp_path / "mine.bpf.c"
    text = (root / "policies" / "rr.bpf.c").read_text()
    source.write_text(text + "const volatile u32 given_cpus = 1, given_nodes;\n")
    launch = '[rodata]\ngiven_cpus = "cpus"\ngiven_nodes = "nodes"\nslice_ns = "7ms"\n'
    source.with_name("mine.launch.toml").write_text(launch)
    process = command(str(source), "--for", "100ms", "--set", "slice_ns=3ms")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    words = (tmp_path / "words").read_text().split()
    n_cpus, sizes = load.machine_sizes()
    assert f"given_cpus={n_cpus}" in words
    assert f"given_nodes={-(-n_cpus // sizes['node'])}" in words
    assert [word for word in words if word.startswith("slice_ns=")] == ["slice_ns=3000000"]
    code = source.with_name("mine.launch.c")
    code.write_text("#include <scx/launch.h>\nSL_USER_THREAD(1000000, 1000) { }\n")
    process = command(str(source), "--for", "100ms")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors.startswith(f"note: the thread of its user half, {code}, runs in the simulator only")
    source.with_name("own.h").write_text("static int launch(void) { SL_SET(given_cpus, 77); return 0; }\n")
    code.write_text('#include <scx/launch.h>\n#include "own.h"\nSL_USER_THREAD(1000000, 1000) { }\n')
    _, errors = command(str(source), "--for", "100ms").communicate(timeout=60)
    assert errors.startswith(f"note: the thread of its user half, {code}, runs in the simulator only")
    assert (tmp_path / "words.image").read_bytes().split(b"\n", 1)[0].startswith(b"data given_cpus 4 8 1")
    code.write_text(
        "#include <scx/launch.h>\nstatic int launch(void) { return 0; }\nSL_USER_HALF(1000) { }\n"
    )
    _, errors = command(str(source)).communicate(timeout=60)
    assert "decides in user space" in errors and "--host guest --loader" in errors


def test_capacities_of_a_machine(tmp_path):
    for cpu, capacity in enumerate((1024, 512)):
        (tmp_path / f"cpu/cpu{cpu}").mkdir(parents=True)
        (tmp_path / f"cpu/cpu{cpu}/cpu_capacity").write_text(f"{capacity}\n")
    assert load.machine_capacity(system=tmp_path) == "0=1024,1=512"
    (tmp_path / "cpu/cpu1/cpu_capacity").write_text("1024\n")
    assert load.machine_capacity(system=tmp_path) == ""


def test_sizes_of_a_machine(tmp_path):
    for cpu in range(8):
        for name, text in {
            "topology/core_cpus_list": cpu // 2,
            "cache/index3/shared_cpu_list": cpu // 4,
        }.items():
            place = tmp_path / f"cpu/cpu{cpu}" / name
            place.parent.mkdir(parents=True)
            place.write_text(f"{text}\n")
    assert load.machine_sizes(system=tmp_path) == (8, {"smt": 2, "llc": 4, "node": 8})


def test_time_limit_and_json(command, needs_clang):
    out, _ = command("rr", "--for", "1ms", "--json").communicate(timeout=60)
    found = json.loads(out)
    assert found["policy"] == "rr" and found["ended_by"] == "by us"
    assert found["calls"]["rr_enqueue"] == {"calls": 120, "ns": 36000}
    assert found["events"] == {"SCX_EV_ENQ_SKIP_EXITING": 2}
    assert found["verifier_instructions"] == {"rr_enqueue": 30}


def test_refusal_and_removal_are_failures(command, needs_clang):
    refused = {"refused": b"the kernel refuses the policy: Permission denied\n"}
    process = command("rr", frames=refused, waits=False)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "the kernel refuses rr:\n" in err and "Permission denied" in err
    log = b"; if (!p) @ a.bpf.c:6\n8: (15) if r1 == 0x0 goto pc+2\n; x = p->a @ a.bpf.c:7\nR0 is wrong\nprocessed 4 insns\nrefused\n"
    _, err = command("rr", frames={"refused": log}, waits=False).communicate(timeout=60)
    assert err.endswith("the kernel refuses rr:\na.bpf.c:7: x = p->a\nR0 is wrong\n")
    gone = RECORDED | {
        "ended": b"by the kernel",
        "kernel": b'sched_ext: BPF scheduler "rr" disabled (runnable task stall)\n'
        b"sched_ext: rr: make[7] failed to run for 30.1s\n",
    }
    process = command("rr", frames=gone, waits=False)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "by the kernel: runnable task stall" in out
    assert "runnable task stall: make[7] failed to run for 30.1s" in err


def test_killed_command_ends_the_loaders_input(command, needs_clang, tmp_path):
    process = command("rr")
    process.stdout.readline()
    process.kill()
    process.wait()
    # The player goes on only when its input has ended, and then ends itself.
    for _ in range(1000):
        if not any((tmp_path / "player").name in words for words in _commands()):
            return
        time.sleep(0.01)
    pytest.fail("the loader is still there")


def test_a_guard_that_holds_lets_the_policy_run_for_its_time(command, may_guard):
    process = command("rr", "--for", "700ms", "--guard", "wakeup_p99 < 60s", "--json")
    out, err = process.communicate(timeout=60)
    found = json.loads(out)
    assert process.returncode == 0, err
    assert found["guard"]["bounds"] == ["wakeup_p99 < 60000 ms"] and found["guard"]["reason"] is None
    assert found["guard"]["windows"] > 0 and found["guard"]["worst_ns"]["wakeup_p99"] > 0


def test_a_broken_guard_unloads_in_less_than_a_second_and_reports(command, may_guard):
    process = command("rr", "--for", "60s", "--guard", "wakeup_max < 1ns", "--json")
    out, _ = process.communicate(timeout=60)
    found = json.loads(out)
    assert process.returncode == 1 and found["held_ns"] < 1_000_000_000
    assert found["guard"]["broken"]["metric"] == "wakeup_max" and found["ended_by"] == "by us"
    process = command("rr", "--guard", "wakeup_max < 1ns")
    out, err = process.communicate(timeout=60)
    assert "guard wakeup_max < 1e-06 ms: " in out
    assert re.search(r"error: unloaded by the guard: wakeup_max was [0-9.e+-]+ ms", err)


def test_a_recorder_that_is_killed_or_stopped_ends_the_policy(command, may_guard):
    for signal_number in (signal.SIGKILL, signal.SIGSTOP):
        process = command("rr", "--guard", "wakeup_p99 < 60s", "--json")
        (recorder,) = _wait_for(lambda parent=process.pid: _children(parent, "schedlab-record"))
        _wait_for(lambda parent=process.pid: _children(parent, "player"))
        time.sleep(0.5)
        with _realtime():
            os.kill(recorder, signal_number)
            killed = time.monotonic()
            _wait_for(lambda parent=process.pid: not _children(parent, "player"))
            assert time.monotonic() - killed < 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(recorder, signal.SIGCONT)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 1 and json.loads(out)["guard"]["reason"].startswith(
            "the recorder is silent"
        )


@pytest.mark.parametrize("n_kills", [5, pytest.param(50, marks=pytest.mark.nightly)])
def test_a_guarded_command_that_is_killed_leaves_nothing(command, may_guard, n_kills):
    before = settings_of_linux()
    for number in range(n_kills):
        process = command("rr", "--guard", "wakeup_p99 < 60s")
        if number % 5:
            process.stdout.readline()
        time.sleep(0.03 * (number % 7))
        left = _children(process.pid, "schedlab-record") + _children(process.pid, "player")
        process.kill(), process.wait()
        _wait_for(lambda pids=left: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert settings_of_linux() == before


@contextlib.contextmanager
def _realtime():
    """So that a busy machine does not keep a test from seeing what happened, and when."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(50))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def _wait_for(what, seconds=10):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return found


def _children(parent: int, name: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            head, _, tail = path.read_text(errors="replace").rpartition(")")
            if int(tail.split()[1]) == parent and head.partition("(")[2] == name and tail.split()[0] != "Z":
                found.append(int(path.parent.name))
    return found


def _commands() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [words for words in found if "player" in words and "schedlab-load-" in words]


# ---- what a machine may lack --------------------------------------------------


@pytest.fixture
def machine(tmp_path):
    """Files of a machine that can load policies; tests take some away."""
    for name, text in {
        "sys/kernel/sched_ext/state": "disabled\n",
        "sys/kernel/sched_ext/root/ops": "scx_lavd\n",
        "sys/kernel/btf/vmlinux": "",
        "proc/self/status": "Name:\tpython\nCapEff:\t000001ffffffffff\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_machine_that_has_all_can_load(machine):
    assert load.unavailable_reason(system=machine) is None


@pytest.mark.parametrize(
    ("release", "why"),
    [("6.1.0-9-amd64", "is older than Linux 6.12"), ("6.18.1", "was built without CONFIG_SCHED_CLASS_EXT")],
)
def test_kernel_without_sched_ext(machine, monkeypatch, release, why):
    monkeypatch.setattr(platform, "release", lambda: release)
    (machine / "sys/kernel/sched_ext/state").unlink()
    said = load.unavailable_reason(system=machine)
    assert release in said and why in said and "--host guest" in said


def test_kernel_without_types_user_without_rights_and_policy_already_there(machine):
    (machine / "sys/kernel/sched_ext/state").write_text("enabled\n")
    assert "'scx_lavd', enabled" in load.unavailable_reason(system=machine)
    (machine / "proc/self/status").write_text("CapEff:\t0000000000000000\n")
    assert "needs CAP_SYS_ADMIN; start schedlab as root" in load.unavailable_reason(system=machine)
    (machine / "sys/kernel/btf/vmlinux").unlink()
    assert "CONFIG_DEBUG_INFO_BTF=y" in load.unavailable_reason(system=machine)


def test_command_refuses_with_its_exit_code(root):
    environment = {**os.environ, "PYTHONPATH": str(root / "python")}

    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "schedlab", "load", *words],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )

    wrong = run("mlfk")
    assert wrong.returncode == 2 and "mlfq" in wrong.stderr
    wrong = run("rr", "--set", "slise_ns=3ms")
    assert wrong.returncode == 2 and "slice_ns" in wrong.stderr
    if load.unavailable_reason():
        here = run("rr")
        assert here.returncode == 3 and load.unavailable_reason() in here.stderr
