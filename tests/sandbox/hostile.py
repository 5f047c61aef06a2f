# SPDX-License-Identifier: MIT
"""Forty policies that attack: what each tries, and what it gets. `--write` makes docs/sandbox.md's table.

    .venv/bin/python tests/sandbox/hostile.py [--write]

Each is a few lines, put into `HEAD` unless it is a whole file. They run with small limits,
so that what only ends by a limit ends soon.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from schedlab.errors import PolicyError
from schedlab.hosts.wasm_run import Engine, Limits
from schedlab.paths import include_folder
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.program.compiler import compile_workload
from schedlab.workload.find import load_workload

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "sandbox.md"
MARK = "<!-- the table of tests/sandbox/hostile.py -->\n"
LIMITS = Limits(callback_fuel=10**7, run_fuel=10**9, memory_bytes=256 << 20)
HEAD = """#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
%s
void BPF_STRUCT_OPS(h_enqueue, struct task_struct *p, u64 enq_flags)
{
	%s
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}
SCX_OPS_DEFINE(h_ops, .enqueue = (void *)h_enqueue, .name = "hostile");
"""


@dataclass(frozen=True)
class Attack:
    """One hostile policy."""

    tries: str  #: What it wants, for a reader.
    gets: str  #: Part of the error; empty: the run is good, and what it wanted has not happened.
    #: `before`, `within`: Lines in front of ops.enqueue(), and in it.
    before: str = ""
    within: str = ""
    whole: str = ""  #: The file, where it is none of these.


def _calls(prototype: str, call: str) -> dict[str, str]:
    return {"before": prototype, "within": call}


NOT_THERE = "is not there: Linux gives a policy what include/scx declares"
NOT_FOUND = "file not found"
#: Folders from that of the headers up to the root.
DEPTH = len(include_folder().resolve().parts) - 1
ATTACKS = {
    # ---- the system ----------------------------------------------------------
    "open": Attack("read /etc/passwd", NOT_THERE, **_calls("int open(const char *, int);", 'open("/etc/passwd", 0);')),
    "socket": Attack("open a socket", NOT_THERE, **_calls("int socket(int, int, int);", "socket(2, 1, 0);")),
    "fork": Attack("leave a process behind", NOT_THERE, **_calls("int fork(void);", "fork();")),
    "clock": Attack("read the real clock", NOT_THERE, **_calls("long time(long *);", "time(0);")),
    "environment": Attack(
        "read the environment", NOT_THERE, **_calls("char *getenv(const char *);", 'getenv("HOME");')
    ),
    "exit": Attack("end the simulator", NOT_THERE, **_calls("void _exit(int);", "_exit(0);")),
    "simulator's function": Attack(
        "print a result of its own", NOT_THERE,
        **_calls("void sim_print_result(int, void *, void *);", "sim_print_result(1, 0, 0);"),
    ),
    "WASI": Attack(
        "import a function of the system", "it imports fd_write of wasi_snapshot_preview1",
        '__attribute__((import_module("wasi_snapshot_preview1"), import_name("fd_write")))\n'
        "int fd_write(int, int, int, int);", "fd_write(1, 0, 1, 0);",
    ),
    "unknown import": Attack(
        "import what does not exist", "it imports nothing of nowhere",
        '__attribute__((import_module("nowhere"), import_name("nothing"))) void nothing(void);', "nothing();",
    ),
    "the host's import": Attack(
        "write records of its own", "it imports write of schedlab",
        '__attribute__((import_module("schedlab"), import_name("write"))) int w(int, int, int);', "w(0, 0, 64);",
    ),
    "constructor": Attack(
        "run before anything else", "",
        "static volatile u64 n;\n__attribute__((constructor)) static void early(void) { for (;;) n++; }",
    ),
    "system call": Attack("a system call by assembly", "inline assembly is disabled", "", 'asm volatile("syscall");'),
    # ---- time ----------------------------------------------------------------
    "endless loop": Attack("not return", "did not return", "static volatile u64 n;", "for (;;) n++;"),
    "endless recursion": Attack(
        "use up the stack", "accessed invalid memory",
        "__attribute__((noinline)) static int deep(volatile char *above)\n"
        "{ volatile char here[256]; here[0] = above[0]; return deep(here) + here[0]; }",
        "char c = 1; deep(&c);",
    ),
    "recursion without a stack": Attack(
        "the same without variables", "accessed invalid memory", "static volatile u64 n;\n"
        "__attribute__((noinline)) static u64 deep(u64 x) { n += x; return n ? deep(x + 1) + n : 0; }",
        "if (deep(1) == 7) return;",
    ),
    "loops of bpf_loop": Attack(
        "2^46 rounds", "did not return",
        "static long inner(u64 i, void *c) { return 0; }\n"
        "static long outer(u64 i, void *c) { bpf_loop(1 << 23, inner, 0, 0); return 0; }",
        "bpf_loop(1 << 23, outer, 0, 0);",
    ),
    "large copies": Attack(
        "copy megabytes by one call", "did not return", "static char a[8 << 20], b[8 << 20];\nstatic volatile u64 n;",
        "for (int i = 0; i < 1000; i++) { __builtin_memcpy(a, b, sizeof(a)); n += a[n] + b[n]++; }",
    ),
    "large fills": Attack(
        "fill megabytes by one call", "did not return", "static char a[16 << 20]; static volatile int v;",
        "for (int i = 0; i < 1000; i++) { __builtin_memset(a, v, sizeof(a)); v += a[v]; }",
    ),
    "a little each time": Attack(
        "use up the run, not a callback", "instructions of a run", "static volatile u64 n;",
        "for (u64 i = 0; i < 900000; i++) n++;",
    ),
    "endless kicks": Attack(
        "keep time from passing", "was kicked 20000 times",
        "void h_dispatch(s32 cpu, struct task_struct *prev) { scx_bpf_kick_cpu(cpu, 0); }\n"
        "#undef SCX_OPS_DEFINE\n#define SCX_OPS_DEFINE(name, ...) struct sched_ext_ops name = "
        "{ __VA_ARGS__, .dispatch = h_dispatch }; struct sl_policy sl_policy = { .layout = SL_LAYOUT, .ops = &name }",
    ),
    # ---- memory --------------------------------------------------------------
    "NULL": Attack("write to address 0", "accessed invalid memory", "", "*(volatile int *)(p->pid - p->pid) = 1;"),
    "wild pointer": Attack("write behind all memory", "accessed invalid memory", "",
                           "*(volatile int *)0xfffffff0 = 1;"),
    "array": Attack("write behind an array", "used an index outside of its array",
                    "static int a[4]; static volatile int i = 9;", "a[i] = 1;"),
    "division": Attack("divide by zero", "divided by zero", "static volatile int zero;", "zero = 5 / zero;"),
    "function pointer": Attack("call what is no function", "accessed invalid memory",
                               "static void (*volatile f)(void) = (void (*)(void))0x7fff;", "f();"),
    "function of another type": Attack(
        "call a function as another", "another type", "static u64 g(u64 a, u64 b) { return a + b; }\n"
        "static u64 (*volatile keep)(u64, u64) = g;", "((void (*)(int))keep)(1);",
    ),
    "more memory": Attack("grow the memory", "instruction 0x40",
                          "", "for (;;) if (__builtin_wasm_memory_grow(0, 100) == (unsigned long)-1) break;"),
    "maps": Attack(
        "2 GiB in a map", "annot allocate memory",
        "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1 << 20); __type(key, u32);\n"
        "__type(value, char[2048]); } big SEC(\".maps\");",
        "u32 k = 0; if (!bpf_map_lookup_elem(&big, &k)) return;",
    ),
    "variables": Attack(
        "100 MB of variables", "does not compile", "static volatile char big[100000000];", "big[p->pid] = 1;"
    ),
    "more variables": Attack(
        "3 GB of them", "does not compile", "static volatile char big[3000000000u];", "big[p->pid] = 1;"
    ),
    "over the simulator": Attack(
        "overwrite all of the simulator's memory", "has damaged what the simulator would say", "",
        "for (volatile u64 *at = (u64 *)0x4000000; ; at++) *at = ~0ULL;",
    ),
    "floating point": Attack("floating point", "floating point", "static volatile double d = 1.5;", "d = d / 3;"),
    # ---- the compiler --------------------------------------------------------
    "include": Attack("have a file's first line in a message", "outside of", '#include "/etc/hostname"'),
    "include above": Attack("the same by a relative path", "outside of", '#include "../../../../etc/passwd"'),
    "include above our headers": Attack(
        "the same from schedlab's own folder", "outside of", f"#include <{'../' * DEPTH}etc/passwd>"
    ),
    "include by a macro": Attack("the same past a look at the text", NOT_FOUND,
                                 '#define WHERE "/etc/hostname"\n#include WHERE'),
    "include of a device": Attack("have the compiler read for ever", NOT_FOUND,
                                  "#define WHERE </dev/zero>\n#include WHERE"),
    "system header": Attack("a header of the system", NOT_FOUND, "#include <sys/types.h>"),
    ".incbin": Attack("have a file in the data", "inline assembly is disabled", 'asm(".incbin \\"/etc/hostname\\"");'),
    "#embed": Attack("the same by C23", NOT_FOUND, 'static const char x[] = {\n#embed "/etc/hostname"\n};'),
    "a constant of 1 GB": Attack("fill the disk", "does not compile",
                                 "const char big[1 << 30] = { [0] = 1, [(1 << 30) - 1] = 1 };"),
    "macros": Attack(
        "2^40 words", "does not compile",
        "#define A0 x x\n" + "\n".join(f"#define A{i} A{i - 1} A{i - 1}" for i in range(1, 40)) + "\nint A39;",
    ),
    "brackets": Attack("a hundred thousand of them", "does not compile",
                       "int x = " + "(" * 100_000 + "1" + ")" * 100_000 + ";"),
    "pragmas": Attack("load a plugin", "", '#pragma clang __debug parser_crash_unless_asked\n'
                      '#pragma comment(lib, "c")\n#pragma clang attribute push\n#pragma clang attribute pop'),
    "a crash of the compiler": Attack("its report of the crash", "does not compile", "#pragma clang __debug crash"),
}  # fmt: skip


@dataclass(frozen=True)
class Result:
    """What came of it."""

    error: str
    seconds: float


def attack(name: str, folder: Path, program: Path) -> Result:
    """Compile and run one of them."""
    its = ATTACKS[name]
    source = folder / "hostile.bpf.c"
    source.write_text(its.whole or HEAD % (its.before, its.within))
    started = time.monotonic()
    try:
        built = build_policy(load_policy(str(source), is_inside=True), engine="wasm")
        answer = (
            Engine(built.shared_object).run(f"--policy\th\t--program\t{program}\t--cpus\t2", LIMITS).answer
        )
        error = answer["error"] or ""
    except PolicyError as refusal:
        error = str(refusal).replace(str(folder), "...")
    return Result(error, time.monotonic() - started)


def prepare(folder: Path) -> Path:
    """The workload that they run."""
    program = folder / "mixed"
    program.write_bytes(compile_workload(load_workload("mixed"), seed=1).data)
    return program


def table() -> str:
    """What each tried and got, as Markdown."""
    lines = ["| policy | what it tries | what it gets |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as scratch:
        program = prepare(Path(scratch))
        for name, its in ATTACKS.items():
            result = attack(name, Path(scratch), program)
            # Of a compiler's message, the line that says what is wrong.
            lines_of = result.error.splitlines()
            words = [line for line in lines_of if "error:" in line] or [" ".join(lines_of[:2])]
            shown = words[0].replace("|", "\\|")[:160] or "nothing: the run is good"
            lines.append(f"| {name} | {its.tries} | {shown} |")
            print(f"{result.seconds:6.2f} s  {name}: {shown}", file=sys.stderr)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    made = table()
    if "--write" in sys.argv:
        before = PAGE.read_text().partition(MARK)[0]
        PAGE.write_text(before + MARK + "\n" + made)
