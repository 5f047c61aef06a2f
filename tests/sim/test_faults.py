# SPDX-License-Identifier: MIT
"""Whatever a policy or a program does, the simulator answers and says whose fault it is.

Every policy below is wrong when it meets the task `x` and right otherwise. It is
loaded by a server: the request with `x` must fail with the right kind, in bounded
time, and the next request, without `x`, must succeed.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from player.build_program import Program, Task, every_verb
from schedlab.metrics.consistency import Expectations, check
from schedlab.metrics.timeline import Timeline
from schedlab.program.compiler import compile_workload
from schedlab.records.file import read_records
from schedlab.workload.spec import parse_workload

ROOT = Path(__file__).resolve().parent.parent.parent
MS = 1_000_000
CALLBACK_LIMIT_MS = 300

HEAD = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
const volatile u64 knob = 5;
static inline bool is_x(struct task_struct *p) { return p->comm[0] == 'x'; }
%s
/* Named, so that no CPU is found and enqueue skipped. */
s32 BPF_STRUCT_OPS(t_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}
void BPF_STRUCT_OPS(t_enqueue, struct task_struct *p, u64 enq_flags)
{
	%s
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 2000000, enq_flags);
}
SCX_OPS_DEFINE(t_ops, .select_cpu = (void *)t_select_cpu, .enqueue = (void *)t_enqueue,
	       .timeout_ms = 1000, .name = "faulty", %s);
"""

#: name -> declarations, statements of enqueue, more operations, kind, texts of
#: the error, whether it must name the task x.
FAULTS = {
    "null pointer": (
        "", "if (is_x(p)) *(volatile int *)8 = 1;", "",
        "crash", ["'faulty' accessed invalid memory in ops.enqueue() for task x[2] on CPU 0"], True,
    ),
    "division by zero": (
        "static volatile int zero;", "if (is_x(p)) zero = (int)knob / zero;", "",
        "crash", ["divided by zero in ops.enqueue()"], True,
    ),
    "endless recursion": (
        "__attribute__((noinline)) static int deep(volatile char *above)\n"
        "{ volatile char here[256]; here[0] = above[0]; return deep(here) + here[0]; }",
        "if (is_x(p)) { char c = 1; knob + deep(&c); }", "",
        "crash", ["accessed invalid memory in ops.enqueue()"], True,
    ),
    "abort": (
        "void abort(void);", "if (is_x(p)) abort();", "",
        "crash", ["aborted in ops.enqueue()"], True,
    ),
    "failed assertion": (
        # What comes after the task is the core's, and where it is queued among that.
        "", "if (is_x(p)) for (int i = 0; i < 24; i++) ((volatile u64 *)(p + 1))[i] |= 1;", "",
        "crash", ["an assertion of schedlab fails at ", "!t->dsq: a schedlab bug, or the policy"], True,
    ),
    "illegal instruction": (
        "", "if (is_x(p)) __builtin_trap();", "",
        "crash", ["another trap, in ops.enqueue()"], True,
    ),
    "endless loop": (
        "static volatile u64 nr;", "while (is_x(p)) nr++;", "",
        "spin", ["'faulty' did not return in ops.enqueue() for task x[2]"], True,
    ),
    "lock never unlocked": (
        "static struct bpf_spin_lock lock;",
        "if (is_x(p)) { bpf_spin_lock(&lock); bpf_spin_lock(&lock); }", "",
        "policy", ["a bpf_spin_lock that ops.enqueue() has taken and not dropped, in a global variable"], True,
    ),
    "crash in a timer": (
        "struct value { struct bpf_timer timer; };\n"
        "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, u32);\n"
        "__type(value, struct value); } timers SEC(\".maps\");\n"
        "static int fire(void *map, int *key, struct value *v) { return *(volatile int *)16; }",
        "if (is_x(p)) { u32 key = 0; struct value *v = bpf_map_lookup_elem(&timers, &key);\n"
        "if (v) { bpf_timer_init(&v->timer, &timers, CLOCK_MONOTONIC);\n"
        "bpf_timer_set_callback(&v->timer, fire); bpf_timer_start(&v->timer, 1000, 0); } }", "",
        "crash", ["accessed invalid memory in", "timer"], False,
    ),
    "endless wait": (
        "int usleep(unsigned int);", "if (is_x(p)) for (;;) usleep(1000000);", "",
        "spin", ["waits and did not return in ops.enqueue() for task x[2]"], True,
    ),
    "unknown queue": (
        "", "if (is_x(p)) { scx_bpf_dsq_insert(p, 77, 1, enq_flags); return; }", "",
        "policy", ["non-existent DSQ 0x4d for x[2]"], True,
    ),
    "lost task": (
        "", "if (is_x(p)) return;", "",
        "stall", ["x[2] failed to run for 1."], True,
    ),
    "own error": (
        "", 'if (is_x(p)) scx_bpf_error("no %s here, %d", p->comm, 5);', "",
        "policy", ["no x here, 5"], True,
    ),
    "buffer overflow": (
        "static s32 x_pid; static void o(s32 cpu, struct task_struct *prev)\n"
        "{ struct task_struct *p = bpf_task_from_pid(x_pid);\n"
        "for (int i = 0; p && i < 40; i++) scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, 1, 0); }",
        "if (is_x(p)) { x_pid = p->pid; return; }", ".dispatch = o",
        "policy", ["dispatch buffer overflow"], True,
    ),
    "invalid CPU": (
        "static s32 o(struct task_struct *p, s32 prev_cpu, u64 flags)\n"
        "{ return is_x(p) ? -5 : prev_cpu; }",
        "", ".select_cpu = o",
        "policy", ["invalid CPU -5 from ops.select_cpu() for x[2]"], True,
    ),
    "init_task refuses": (
        "static s32 o(struct task_struct *p, struct scx_init_task_args *a)\n"
        "{ return is_x(p) ? -12 : 0; }",
        "", ".init_task = o",
        "policy", ["ops.init_task() failed (-12) for x[2]"], True,
    ),
    "endless kicks": (
        "static bool is_met; static void o(s32 cpu, struct task_struct *prev)\n"
        "{ if (is_met) { scx_bpf_kick_cpu(0, 0); scx_bpf_kick_cpu(1, 0); } }",
        "if (is_x(p)) { is_met = true; scx_bpf_kick_cpu(1, 0); }", ".dispatch = o",
        "policy", ["kicked 20000 times", "faulty"], False,
    ),
    # The handler had asked for memory by fdopen().
    "crash after a damaged heap": (
        "void *malloc(unsigned long);",
        "if (is_x(p)) { volatile char *at = malloc(100000);\n"
        "for (int i = 100000; i < 100100; i++) at[i] = -1;\n*(volatile int *)8 = 1; }", "",
        "crash", ["'faulty' accessed invalid memory in ops.enqueue() for task x[2] on CPU 0"], True,
    ),
    "flood where the result belongs": (
        "long write(int, const void *, unsigned long); long lseek(int, long, int);",
        "static char text[4096]; while (is_x(p)) for (int fd = 3; fd < 32; fd++)\n"
        "if (lseek(fd, 0, 1) < 0) write(fd, text, sizeof(text));", "",
        "crash", ["the policy writes without end into the pipe that is for the result"], False,
    ),
    "ends the process": (
        "void _exit(int);", "if (is_x(p)) _exit(3);", "",
        "crash", ["ended with code 3 and no result"], False,
    ),
    "kills the process": (
        "int kill(int, int); int getpid(void);", "if (is_x(p)) kill(getpid(), 9);", "",
        "crash", ["ended by signal 9"], False,
    ),
}  # fmt: skip


def compile_policy(source: str, folder: Path, name: str, include: Path = ROOT / "include") -> Path:
    """Compile a policy from text; returns the shared object."""
    target = folder / f"{name.replace(' ', '-')}.so"
    subprocess.run(
        ["cc", "-std=gnu11", "-O1", "-fPIC", "-shared", "-w", f"-I{include}",
         "-o", target, "-x", "c", "-"],
        input=source, text=True, check=True,
    )  # fmt: skip
    return target


def faulty(folder: Path, name: str, declarations: str = "", statements: str = "", more: str = "") -> Path:
    """Compile a policy of `HEAD`."""
    return compile_policy(HEAD % (declarations, statements, more), folder, name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, need) -> Path:
    need("cc")
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def sound(folder) -> Path:
    """A policy without fault."""
    return faulty(folder, "sound")


def workload(folder: Path, *tasks: str) -> Path:
    """Program of hogs with these names; the second one comes at 1 ms."""
    text = '[workload]\ntitle = "t"\nquestion = "q"\ntick = "1ms"\njitter = "0ms"\n'
    for i, name in enumerate(tasks):
        text += f'[[task]]\nname = "{name}"\narrival = "{i}ms"\nphases = [{{run = "6ms"}}]\n'
    path = folder / "-".join(tasks)
    path.write_bytes(compile_workload(parse_workload(text), seed=0).data)
    return path


class Server:
    """A simulator that answers requests."""

    def __init__(self, simulator: Path, policy: Path, *options: str):
        self.process = subprocess.Popen(
            [simulator, "--serve", "--policy", policy, "--tick-ns", str(MS), "--cpus", "2",
             "--callback-limit-ms", str(CALLBACK_LIMIT_MS), *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(10) == 0
        self.process.stdout.close()

    def ask(self, *words: object) -> dict:
        """Send one request; the answer is one line of JSON."""
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.mark.full
@pytest.mark.parametrize("name", FAULTS)
def test_fault_of_a_policy(name, simulator, folder):
    declarations, statements, more, kind, texts, is_named = FAULTS[name]
    policy = faulty(folder, name, declarations, statements, more)
    bad, good = workload(folder, "a", "x"), workload(folder, "a", "b")
    with Server(simulator, policy) as server:
        start_s = time.monotonic()
        answer = server.ask("--program", bad, "--id", "bad")
        # Bounded: the limit, some checks of it, and a busy machine.
        assert time.monotonic() - start_s < CALLBACK_LIMIT_MS / 1000 + 10
        assert (answer["status"], answer["error_kind"], answer["id"]) == ("failed", kind, "bad")
        for text in texts:
            assert text in answer["error"]
        if is_named:
            assert answer["task"] == 2
        if name == "illegal instruction":
            assert answer["policy_offset"] > 0, "which instruction it was"
        if kind in ("policy", "stall"):
            assert "policy_offset" not in answer, "none was"
        if kind in ("policy", "stall") and name != "endless kicks":
            assert answer["nr_exited"] == answer["nr_tasks"] == 2, "S30: no task is lost"
        after = server.ask("--program", good, "--id", "good")
        assert (after["status"], after["error"], after["nr_exited"]) == ("ok", None, 2)
        again = server.ask("--program", bad, "--id", "bad")
        assert again["error"] == answer["error"]


def test_more_tasks_than_the_policy_has_attributes_for(simulator, folder, tmp_path):
    """The second comes in a tick that would take from 1 to 1.5 ms."""
    few = "#define TASK_ATTRS_MAX 1\n#include <scx/task_attr.h>"
    policy = faulty(folder, "few attributes", few, "if (!task_attr(p)) return;", ".exit_task = NULL")
    one, two = tmp_path / "one", tmp_path / "two"
    text = '[workload]\ntitle = "t"\nquestion = "q"\njitter = "0ms"\n'
    for path, arrival in ((one, "0ms"), (two, "1200us")):
        text += f'[[task]]\nname = "{path.name}"\narrival = "{arrival}"\ntickets = 5\nphases = [{{run = "6ms"}}]\n'
        path.write_bytes(compile_workload(parse_workload(text), seed=0).data)
    with Server(simulator, policy) as server:
        answer = server.ask("--program", two, "--cost", "tick_ns=500000")
        assert (answer["error_kind"], answer["task"], answer["end_ns"]) == ("program", 2, 1_200_000)
        assert answer["error"] == "no room for task two[2]: the task_attrs map is full"
        for cpu in answer["cpus"]:
            assert cpu["busy_ns"] + cpu["idle_ns"] + cpu["overhead_ns"] == answer["end_ns"]
        # Where tasks are there before, it is the policy's load that has no room for them.
        answer = server.ask("--program", two, "--arrivals", "wake")
        assert (answer["error_kind"], answer["task"]) == ("policy", 2)
        assert answer["error"] == "runtime error: the task_attrs map has no room for two[2]"
        assert server.ask("--program", one)["status"] == "ok"


def loaded(simulator: Path, folder: Path, policy: Path) -> dict:
    """The answer of a policy whose load fails."""
    with Server(simulator, policy) as server:
        answer = server.ask("--program", workload(folder, "a", "b"))
    assert answer["error_kind"] == "policy"
    return answer


@pytest.mark.parametrize(
    ("name", "body", "texts"),
    [
        ("init fails", "return -12;", ("'faulty' could not be loaded", "annot allocate memory")),
        ("init says why", 'scx_bpf_error("no queue %d", 7); return -22;', ("Invalid argument: no queue 7",)),
        ("init errs", 'scx_bpf_error("not today"); return 0;', ("not today",)),
    ],
)
def test_init_that_fails(simulator, folder, name, body, texts):
    policy = faulty(folder, name, f"static s32 o(void) {{ {body} }}", "", ".init = o")
    answer = loaded(simulator, folder, policy)
    assert all(text in answer["error"] for text in texts)
    assert answer["nr_exited"] == 2 or name != "init errs"


def test_text_of_a_policy_is_utf8(simulator, folder):
    says = r"""static s32 o(void) {
        scx_bpf_error("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \x01\x7f "
                      "\xff \xc3 \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82");
        return 0; }"""
    answer = loaded(simulator, folder, faulty(folder, "utf8", says, "", ".init = o"))
    bad = "\N{REPLACEMENT CHARACTER}"
    rests = " ".join(bad * n for n in (1, 1, 2, 3, 4, 2))
    assert f'"é€😀 \x01\x7f {rests}' in answer["error"]


def test_a_simulation_is_the_first_to_go_when_memory_is_short(simulator, folder):
    says = r"""int open(const char *, int, ...); long read(int, void *, unsigned long);
        static s32 o(void) {
        char score[8] = ""; read(open("/proc/self/oom_score_adj", 0), score, 7);
        scx_bpf_error("score %s", score); return 0; }"""
    policy = faulty(folder, "score", says, "", ".init = o")
    with Server(simulator, policy) as server:
        answer = server.ask("--program", workload(folder, "a", "b"))
        assert "score 1000" in answer["error"]
        own = Path(f"/proc/{server.process.pid}/oom_score_adj").read_text()
        assert own == Path("/proc/self/oom_score_adj").read_text()


@pytest.mark.parametrize(
    ("knob", "text"),
    [("knobb=5", "has no knob 'knobb'"), ("knob", "expected NAME=VALUE"), ("=5", "NAME=VALUE"),
     ("knob=five", "'five' is not a number of 8 bytes"), ("knob=5x", "is not a number"),
     ("t_ops=5", "is not a number"), ("t_enqueue=5", "has no knob"), ("puts=5", "has no knob"),
     ("knob=99999999999999999999", "is not a number")],
)  # fmt: skip
def test_knob_that_does_not_exist(simulator, folder, sound, knob, text):
    with Server(simulator, sound) as server:
        answer = server.ask("--program", workload(folder, "a", "b"), "--set", knob)
        assert answer["error_kind"] == "usage" and text in answer["error"]
        assert server.ask("--program", workload(folder, "a", "b"))["status"] == "ok"


@pytest.mark.parametrize("contents", [None, b"", b"no ELF file at all", b"\x7fELF and no more"])
def test_policy_that_is_none(simulator, folder, tmp_path, contents):
    policy = tmp_path / "none.so"
    if contents is not None:
        policy.write_bytes(contents)
    program = workload(folder, "a", "b")
    with Server(simulator, policy) as server:
        for _ in range(2):
            answer = server.ask("--program", program)
            assert answer["error_kind"] == "policy" and "none.so" in answer["error"]
    done = subprocess.run(
        [simulator, "--policy", policy, "--program", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stdout == "" and "none.so" in done.stderr


def test_library_that_is_no_policy(simulator, folder):
    library = compile_policy("int x;", folder, "library")
    assert "no SCX_OPS_DEFINE() in it" in loaded(simulator, folder, library)["error"]


@pytest.mark.parametrize(
    ("file", "before"),
    [("types.h", "\ts32 pid;"), ("types.h", "\tchar comm["), ("types.h", "\tu64 slice;"), ("ops.h", "\tchar name[")],
)  # fmt: skip
def test_policy_of_another_layout_is_refused(simulator, folder, tmp_path, file, before):
    """It would read one member of a task for another, and run."""
    include = shutil.copytree(ROOT / "include", tmp_path / "include")
    header = include / "scx" / file
    text = header.read_text()
    assert text.count(before) == 1
    header.write_text(text.replace(before, "\tu64 of_another_version;\n" + before))
    other = compile_policy(HEAD % ("", "", ""), tmp_path, "other", include)
    assert "compile it again" in loaded(simulator, folder, other)["error"]


@pytest.mark.full
def test_a_policy_that_is_slow_is_not_stuck(simulator, folder):
    """Nearly all CPU time is its callbacks', more than the limit, but each ends after a fifth of that."""
    spend = f"long end = clock() + {CALLBACK_LIMIT_MS * 1000 // 5}; while (clock() < end);"
    slow = faulty(folder, "slow", "long clock(void);", spend)
    with Server(simulator, slow) as server:
        answer = server.ask("--program", workload(folder, *"abcd"))
    assert answer["error"] is None


COSTS = [
    "switch", "leave", "migrate", "migrate_llc", "migrate_node", "start", "exit", "call", "wakeup", "tick", "ipi",
]  # fmt: skip


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_is_at_most_a_second(simulator, folder, sound, name):
    program = workload(folder, "a", "b")
    with Server(simulator, sound) as server:
        for value, is_accepted in ((0, True), (10**9, True), (10**9 + 1, False)):
            answer = server.ask("--program", program, "--tick-ns", 2 * 10**9, "--cost", f"{name}_ns={value}")
            assert (answer["error"] is None) == is_accepted, answer["error"]
    assert f"{name}_ns: '1000000001' is not a number from 0 to 1000000000" in answer["error"]


@pytest.mark.parametrize(
    ("words", "text"),
    [(["--what", "5"], "unknown option '--what'"), (["--cpus"], "lacks a value"),
     (["--cpus", "0"], "not a number from 1 to 1024"), (["--cpus", "1025"], "1024"),
     (["--cpus", "-1"], "not a number"), (["--tick-ns", "12"], "not a number from 1000"),
     (["--cost", "switch=4"], "unknown key 'switch'"), (["--cost", "tick_ns=2000000"], "whole tick"),
     (["--topology", "smt"], "unknown key 'smt'"), (["--arrivals", "late"], "none of 'start', 'wake' and 'roots'"),
     (["--exits", "twice"], "neither 'once' nor 'regroup'"), (["--above", "0:5"], "'0:5' does not begin with CPU:START_NS:LENGTH_NS"),
     (["--above", "0:5:1,9:5:1"], "'9:5:1' does not begin with CPU:START_NS:LENGTH_NS"), (["--above", "0:5:0"], "'0:5:0'"), (["--cpus", "2", "--offline", "0:5:1"], "--offline: '0:5:1' does not begin with CPU:START_NS:LENGTH_NS, of a CPU from 1 to 1"),
     (["--cpus", "2", "--capacity", "0-2=512"], "--capacity: '0-2=512' is no list of FIRST-LAST=CAPACITY, of CPUs from 0 to 1, each 1 to 1024"),
     (["--capacity", "0=1025"], "'0=1025' is no list"), (["--capacity", "1-0=5"], "'1-0=5' is no list"), (["--capacity", "x"], "'x' is no list"),
     (["--io", "depth=0"], "not a number from 1"),
     (["--seed", "one"], "'one' is not a number"), ([], "--program is missing"),
     (["--program", "no/such/file"], "no/such/file: No such file"),
     (["--records", "no/such/folder/r"], "no/such/folder/r: No such file"),
     (["x" * 100_000], "is unknown or lacks a value"), (["\x01\x02\x7f\xff"], "lacks a value"),
     (["--set", "knob=1"] * 300, "")],
    ids=lambda value: " ".join(value)[:24] if isinstance(value, list) else "",
)  # fmt: skip
def test_request_that_is_wrong(simulator, folder, sound, words, text):
    program = workload(folder, "a", "b")
    more = ["--id", "7"] if not words or words[0] == "--program" else ["--program", program]
    with Server(simulator, sound) as server:
        answer = server.ask(*more, *words)
        assert answer["status"] == "failed" and answer["error_kind"] == "usage"
        assert text in answer["error"]
        assert server.ask("--program", program)["status"] == "ok"


def test_a_server_answers_however_many_requests_fail(simulator, sound):
    """Each answer once kept a file open: the 38th of 40 was silence."""
    done = subprocess.run(
        ["bash", "-c", 'ulimit -n 40; exec "$0" --serve --policy "$1"', simulator, sound],
        input="--what\tx\n" * 100,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert [json.loads(line)["error_kind"] for line in done.stdout.splitlines()] == ["usage"] * 100


def test_no_word_of_a_request_is_left_out(simulator, sound):
    with Server(simulator, sound) as server:
        answer = server.ask(*["--seed", 1] * 200, "--what", "x")
    assert answer["error_kind"] == "usage" and "too many words" in answer["error"]


# ---- programs -----------------------------------------------------------


def until(program: Program, horizon_ns: int) -> bytes:
    """A program whose run ends at a horizon."""
    data = bytearray(program.pack())
    data[32:40] = horizon_ns.to_bytes(8, "little")
    return bytes(data)


def ask_about(simulator, policy, tmp_path, program: Program, *options: object) -> dict:
    """The answer to a program, and proof that the server lives on."""
    path = tmp_path / "program"
    path.write_bytes(program.pack())
    good = tmp_path / "good"
    good.write_bytes(Program([Task([("run", 0, MS), ("exit", 0, 0)])]).pack())
    with Server(simulator, policy) as server:
        answer = server.ask("--program", path, *options)
        assert server.ask("--program", good)["status"] == "ok"
    return answer


LOCK, PIPE, BARRIER = (1, 0), (2, 4), (3, 2)
EXIT = ("exit", 0, 0)
DEADLOCKS = {
    "two locks, crossed": (
        [
            Task([("lock", 0, 0), ("run", 0, 3 * MS), ("lock", 1, 0), EXIT]),
            Task([("lock", 1, 0), ("run", 0, 3 * MS), ("lock", 0, 0), EXIT]),
        ],
        [LOCK, LOCK],
        ["test[1] for lock", "test[2] for lock"],
    ),
    "nobody sends": ([Task([("recv", 0, 8), EXIT])], [PIPE], ["test[1] for data in pipe"]),
    "nobody receives": ([Task([("send", 0, 9), EXIT])], [PIPE], ["test[1] for room in pipe"]),
    "one party is missing": (
        [Task([("barrier", 0, 0), ("barrier", 0, 0), EXIT]), Task([("barrier", 0, 0), EXIT])],
        [BARRIER],
        ["1 tasks wait: test[1] for barrier"],
    ),
    "a holder that has ended": (
        [Task([("lock", 0, 0), EXIT]), Task([("run", 0, MS), ("lock", 0, 0), EXIT])],
        [LOCK],
        ["test[2] for lock"],
    ),
}


@pytest.mark.parametrize("name", DEADLOCKS)
def test_deadlock_names_who_waits(simulator, sound, tmp_path, name):
    tasks, objects, texts = DEADLOCKS[name]
    answer = ask_about(simulator, sound, tmp_path, Program(tasks, objects))
    assert answer["error_kind"] == "deadlock"
    for text in texts:
        assert text in answer["error"]
    assert answer["end_ns"] <= 10 * MS, "reported when it happens"


def test_tasks_may_wait_until_a_horizon(simulator, sound, tmp_path):
    path = tmp_path / "program"
    path.write_bytes(until(Program([Task([("recv", 0, 8), EXIT])], [PIPE]), 50 * MS))
    with Server(simulator, sound) as server:
        answer = server.ask("--program", path)
    assert (answer["status"], answer["end_ns"]) == ("ok", 50 * MS)


PROGRAMS = {
    "no time passes": ([("loop", 2, 0), ("lock", 0, 0), ("end", 0, 0), EXIT], "holds already"),
    "endless yields": ([("loop", 2, 0), ("yield", 0, 0), ("end", 0, 0), EXIT], "without taking time"),
    "unlocks what it does not hold": ([("unlock", 0, 0), EXIT], "which it does not hold"),
    "waits for nobody": ([("wait", 2, 0), EXIT], "of which only 0 exist"),
    "impossible weight": ([("set", 7, 0), EXIT], "attribute 7 to an impossible value"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_that_goes_wrong(simulator, sound, tmp_path, name):
    ops, text = PROGRAMS[name]
    answer = ask_about(simulator, sound, tmp_path, Program([Task(ops)], [LOCK]))
    assert (answer["error_kind"], answer["task"]) == ("program", 1), answer["error"]
    assert text in answer["error"] and "test[1]" in answer["error"]


def test_loop_without_time_is_refused(simulator, sound, tmp_path):
    loop = Program([Task([("loop", 2, 0), ("set", 1, 4), ("end", 0, 0), EXIT])])
    answer = ask_about(simulator, sound, tmp_path, loop)
    assert answer["error_kind"] == "usage"
    assert "task 0: op 2: a loop in which nothing takes time" in answer["error"]


def test_limit_of_virtual_time(simulator, sound, tmp_path):
    endless = Program([Task([("loop", 2, 0), ("run", 0, MS), ("end", 0, 0), EXIT])])
    answer = ask_about(simulator, sound, tmp_path, endless, "--limit-ns", 70 * MS)
    assert answer["error_kind"] == "limit" and answer["end_ns"] == 70 * MS
    assert "1 of 1 tasks had not ended at the limit of 70000000 ns" in answer["error"]


def test_truncated_program(simulator, sound, tmp_path):
    whole = every_verb().pack()
    path = tmp_path / "program"
    with Server(simulator, sound) as server:
        for size in range(0, len(whole), 13):
            path.write_bytes(whole[:size])
            answer = server.ask("--program", path)
            assert answer["error_kind"] == "usage", f"cut at {size}: {answer}"
            assert "program" in answer["error"]
        path.write_bytes(whole + b"\0")
        assert server.ask("--program", path)["error_kind"] == "usage"
        path.write_bytes(whole)
        assert server.ask("--program", path)["error_kind"] != "usage"


def test_corrupt_program(simulator, sound, tmp_path):
    """A changed byte may make another program, or none; never a crash of ours."""
    whole = every_verb().pack()
    path = tmp_path / "program"
    draw = random.Random(20261121)
    kinds = set()
    with Server(simulator, sound) as server:
        for _ in range(400):
            damaged = bytearray(whole)
            for _ in range(draw.choice((1, 1, 1, 4))):
                damaged[draw.randrange(len(whole))] = draw.choice((0, 1, 0x7F, 0xFF, draw.randrange(256)))
            path.write_bytes(damaged)
            answer = server.ask("--program", path, "--limit-ns", 10**9)
            kinds.add(answer["error_kind"])
            assert answer["error_kind"] in (None, "usage", "program", "deadlock", "limit"), (
                f"{answer}; changed: {[i for i in range(len(whole)) if whole[i] != damaged[i]]}"
            )
    assert "usage" in kinds and len(kinds) > 1


# ---- an instant, and the end of time --------------------------------------


@pytest.mark.parametrize(
    ("ops", "options"),
    [
        ([("run", 0, 2**62 - 1)], ()),
        ([("sleep", 0, 2**62 - 1)], ()),
        ([("period", 0, 2**62 - 1)], ()),
        ([("work", 0, 2**62 - 1)], ("--work", f"pi_ps={10**12}")),
        ([("read", 2**32 - 1, 2**62 - 1, 2, 0)], ("--io", f"ns_per_kib={10**9}")),
    ],
    ids=lambda value: value[0][0] if isinstance(value, list) else "",
)
def test_what_ends_behind_the_end_of_time_goes_on(simulator, sound, tmp_path, ops, options):
    """Keys of events are 64 bits: a sum that wrapped once stood before all others."""
    program = Program([Task([("run", 0, MS), *ops, EXIT])])
    answer = ask_about(simulator, sound, tmp_path, program, "--limit-ns", 10**9, *options)
    assert (answer["error_kind"], answer["end_ns"]) == ("limit", 10**9)


def test_a_timer_that_starts_itself_for_at_once_is_stopped(simulator, folder):
    declarations, statements, *_ = FAULTS["crash in a timer"]
    again = declarations.replace("return *(volatile int *)16;", "return bpf_timer_start(&v->timer, 0, 0);")
    assert again != declarations
    policy = faulty(folder, "timer at once", again, statements)
    with Server(simulator, policy) as server:
        answer = server.ask("--program", workload(folder, "a", "x"))
        assert answer["error_kind"] == "policy"
        assert "timers called back 20000 times at 1001000 ns" in answer["error"]
        assert server.ask("--program", workload(folder, "a", "b"))["status"] == "ok"


def test_a_program_may_talk_across_cpus_without_taking_time(simulator, sound, tmp_path):
    """Each message kicks the other CPU: 60,000 times, but never in vain."""
    rounds = 30_000
    talk = [("send", 0, 1), ("recv", 1, 1)]
    answer_it = [("recv", 0, 1), ("send", 1, 1)]
    program = Program(
        [Task([("loop", 3, rounds), *ops, ("end", 0, 0), EXIT]) for ops in (talk, answer_it)], [PIPE, PIPE]
    )
    answer = ask_about(simulator, sound, tmp_path, program, "--cpus", 2)
    assert (answer["status"], answer["error"], answer["nr_exited"]) == ("ok", None, 2)


@pytest.mark.parametrize("horizon_ns", [300_000, 5_100_000, 5_500_000, 10_700_000])
def test_a_horizon_within_overhead_leaves_lawful_records(simulator, sound, tmp_path, horizon_ns):
    """The end of a run falls into a switch, or into a tick that takes time."""
    path, records = tmp_path / "program", tmp_path / "records"
    path.write_bytes(until(Program([Task([("run", 0, 50 * MS), EXIT]) for _ in range(3)]), horizon_ns))
    with Server(simulator, sound) as server:
        answer = server.ask(
            "--program", path, "--records", records, "--cost", "switch_ns=500000,tick_ns=200000"
        )
    assert (answer["status"], answer["end_ns"]) == ("ok", horizon_ns)
    expected = Expectations(host_cpus=answer["cpus"], horizon_ns=horizon_ns)
    assert check(Timeline(read_records(records)), expected) == "ok"
