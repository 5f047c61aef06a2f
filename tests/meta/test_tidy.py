# SPDX-License-Identifier: MIT
"""tools/tidy catches each violation it exists for, and accepts this checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

C = "/* SPDX-License-Identifier: MIT */\n"
POLICY = "/* SPDX-License-Identifier: MIT OR GPL-2.0-only */\n"
PYTHON = "# SPDX-License-Identifier: MIT\n"
PACKAGE_PAGE = '"""The exact work.\n\nIn: a workload.\nOut: a program.\nRead next: file.py.\n"""\n'

#: A small tree that obeys every rule; each test adds one file to it.
LAWFUL = {
    "include/scx/types.h": POLICY + "#include <stdint.h>\n",
    "include/scx/common.bpf.h": POLICY + "#include <scx/types.h>\n",
    "include/schedlab/task.h": C + "#include <scx/types.h>\n",
    "policies/fifo.bpf.c": POLICY + "#include <scx/common.bpf.h>\n",
    "core/queue.h": C + "#include <schedlab/task.h>\n",
    "core/queue.c": C + '#include "queue.h"\n#include "host_inline.h"\n',
    "player/player.h": C + "#include <schedlab/task.h>\n",
    "hosts/sim/event.h": C,
    "hosts/sim/host_inline.h": C + "#ifdef __linux__\n#endif\n",
    "hosts/sim/host.c": C + '#include <stdio.h>\n#include <schedlab/task.h>\n#include "event.h"\n',
    "hosts/uthreads/stack.h": C + "#include <player.h>\n",
    "hosts/uthreads/lib/io.h": C + "#include <stack.h>\n",
    "python/schedlab/__init__.py": PYTHON,
    "python/schedlab/errors.py": PYTHON,
    "python/schedlab/program/__init__.py": PYTHON + PACKAGE_PAGE,
    "python/schedlab/program/file.py": PYTHON + "import json\nfrom .. import errors\n",
    "python/schedlab/metrics/fairness.py": PYTHON
    + "from .. import __version__, program\nfrom . import tally\n",
    "python/schedlab/metrics/tally.py": PYTHON + "from ..program.file import read\nfrom .fairness import f\n",
}

LONG_BODY = "\tx++;\n" * 80


def write_tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def tidy(root, tmp_path):
    """Function that runs tools/tidy on the lawful tree plus some files."""

    def run(files: dict[str, str]) -> subprocess.CompletedProcess:
        write_tree(tmp_path, LAWFUL | files)
        return subprocess.run(
            [sys.executable, root / "tools" / "tidy", tmp_path], capture_output=True, text=True, check=False
        )

    return run


def test_a_lawful_tree_has_no_findings(tidy):
    done = tidy({})
    assert done.stdout == ""
    assert done.returncode == 0


# Text that a violation needs is put together here, so that this file has none.
TODO = "X" * 3
EXCUSE = "tidy: long, because"
SOMEBODYS_HOME = "/".join(["", "home", "somebody", "schedlab"])

VIOLATIONS = {
    "policy includes core": (
        "policies/bad.bpf.c", POLICY + '#include "../core/queue.h"\n',
        ":2: ../core/queue.h lies in core/; policies/ may include include/scx only",
    ),
    "policy includes schedlab": (
        "policies/bad.bpf.c", POLICY + "#include <schedlab/task.h>\n", "lies in include/schedlab/",
    ),
    "policy includes the C library": (
        "policies/bad.bpf.c", POLICY + "#include <stdlib.h>\n", "stdlib.h is no header of this",
    ),
    "policy includes a host": (
        "policies/bad.bpf.c", POLICY + "#include <hosts/sim/event.h>\n", "event.h",
    ),
    "scx includes schedlab": (
        "include/scx/bad.h", POLICY + "#include <schedlab/task.h>\n", "lies in include/schedlab/",
    ),
    "core includes a host": ("core/bad.c", C + '#include "../hosts/sim/event.h"\n', "hosts/sim"),
    "core includes a host by name": ("core/bad.c", C + '#include "event.h"\n', "hosts/sim"),
    "core includes the player": ("core/bad.c", C + '#include "player.h"\n', "lies in player/"),
    "core includes libc": ("core/bad.c", C + "#include <string.h>\n", "string.h is no header"),
    "player includes core": ("player/bad.c", C + '#include "queue.h"\n', "lies in core/"),
    "machine includes the library above it": (
        "hosts/uthreads/bad.c", C + '#include "lib/io.h"\n', "lib/io.h lies in hosts/uthreads/lib/",
    ),
    "host includes another host": (
        "hosts/sim/bad.c", C + '\n#include "../uthreads/stack.h"\n',
        "hosts/sim/bad.c:3: ../uthreads/stack.h lies in hosts/uthreads/",
    ),
    "host includes another host by name": (
        "hosts/kernel/kernel/bad.c", C + '#include "event.h"\n', "lies in hosts/sim/",
    ),
    "Linux host includes core": ("hosts/linux/bad.c", C + '#include "queue.h"\n', "core/"),
    "core asks for its host": (
        "core/bad.c", C + "#ifdef SL_HOST_SIM\n#endif\n", "condition on the host (SL_HOST_SIM)",
    ),
    "core asks for Linux": (
        "core/bad.c", C + "#if defined(__linux__)\n#endif\n", "condition on the host (__linux__)",
    ),
    "core uses floats": ("core/bad.c", C + "static double share;\n", "double: core/ has no"),
    "core uses the heap": ("core/bad.c", C + "void f(void) { malloc(3); }\n", "malloc: core/"),
    "an old name": ("core/bad.c", C + "void f(void) { SL_TELL(1); }\n", "SL_TELL: use the kernel's word"),
    "a person in a comment": (
        "core/bad.c", C + "\n/* Two lines: the lock\n * is whoever's that came. */\n",
        "core/bad.c:4: whoever: a person; name the CPU",
    ),
    "a pronoun in a test's comment": (
        "tests/core/bad.c", C + "/* In 40 us\n * it is ours. */\n",
        "tests/core/bad.c:3: ours: a person; name the CPU",
    ),
    "an error by its number": (
        "hosts/sim/bad.c", C + "int f(void)\n{\n\treturn -22;\n}\n", ":4: return -22; an error by its number",
    ),
    "a host may call one function more": (
        "include/schedlab/sched.h", C + "".join(f"void sl_call_{i}(struct sl_cpu *cpu,\n\t\tint x);\n" for i in range(13)),
        ":1: declares 13 functions, at most 12: sl_call_0, sl_call_1",
    ),
    "host includes core": (
        "hosts/sim/bad.c", C + '#include "queue.h"\n',
        "queue.h lies in core/; hosts/sim/ may include",
    ),
    "host reads the core's variables": (
        "hosts/sim/bad.c", C + "u32 f(void) { return sl_core.nr_cpus; }\n",
        "sl_core.: the core's own; ask through include/schedlab/machine.h",
    ),
    "host writes a member of the core's": (
        "hosts/uthreads/bad.c", C + "void f(struct t *t) { t->core.p.flags |= 4; }\n",
        "a member that only the core writes",
    ),
    "host publishes a member of the core's": (
        "hosts/kernel/kernel/bad.c", C + "void f(struct t *p) { WRITE_ONCE(p->task.state, 1); }\n",
        "a member that only the core writes",
    ),
    "host schedules outside sched.c": (
        "hosts/kernel/kernel/bad.c", C + "void f(void) { sl_schedule(1); }\n",
        "sl_schedule() is called in hosts/kernel/kernel/sched.c only",
    ),
    "sched.c in another order": (
        "hosts/sim/sched.c",
        C + "".join(f"void sim_{name}(void)\n{{\n}}\n" for name in (
            "schedule", "finish_switch", "wake", "prepare_block", "tick", "start")),
        "has schedule, finish_switch, wake, prepare_block, tick, start; each host's sched.c has",
    ),
    "sched.c without a function": (
        "hosts/uthreads/sched.c", C + "void ut_schedule(void)\n{\n}\n", "has schedule; each host's",
    ),
    "a count by C's name": (
        "python/schedlab/program/work.py", PYTHON + "def f(nr_cpus):\n    pass\n", ":2: nr_cpus: a count is n_",
    ),
    "a package that says nothing": (
        "python/schedlab/metrics/__init__.py", PYTHON + '"""Numbers.\n\nIn: x.\nOut: y.\n"""\n',
        ":1: the docstring of a package has a line 'Read next:'",
    ),
    "a package that imports": (
        "python/schedlab/program/__init__.py", PYTHON + PACKAGE_PAGE + "from .file import read\n",
        ":8: a package runs nothing when it is imported",
    ),
    "Python that does not parse": ("python/schedlab/program/work.py", PYTHON + "def\n", "no Python"),
    "C without a licence": ("core/bad.c", "int x;\n", "no SPDX-License-Identifier"),
    "policy that Linux would refuse": ("policies/bad.bpf.c", C, "Linux loads only"),
    "long C function": (
        "core/bad.c", C + "static int f(int x)\n{\n" + LONG_BODY + "}\n",
        "core/bad.c:2: a function of 83 lines; at most 70",
    ),
    "long C function made by a macro": (
        "policies/bad.bpf.c",
        POLICY + "void BPF_STRUCT_OPS(bad_enqueue, int x)\n{\n" + LONG_BODY + "}\n",
        "a function of 83 lines",
    ),
    "long Python function": (
        "tools/bad.py", PYTHON + "def f(x):\n" + "    x += 1\n" * 80, ":2: a function of 81 lines",
    ),
    "excuse without a reason": (
        "core/bad.c", C + f"/* {EXCUSE} */\n" + "int x;\n" * 700, ":1: a file of 702 lines",
    ),
    "excuse of another function": (
        "core/bad.c",
        C + f"/* {EXCUSE} of me, not of f. */\nint f(int x)\n{{\n" + LONG_BODY + "}\n",
        ":3: a function of 83 lines",
    ),
    "long file": ("core/bad.c", C + "int x;\n" * 700, ":1: a file of 701 lines; at most 700"),
    "dead code": ("core/bad.c", C + "#if 0\nint x;\n#endif\n", ":2: dead code"),
    "reminder": ("core/bad.c", C + f"/* {TODO}: think */\n", ":2: " + TODO),
    "path of a machine": ("docs/bad.md", f"See `{SOMEBODYS_HOME}`.\n", ":1: " + SOMEBODYS_HOME),
}  # fmt: skip


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_is_caught(tidy, name):
    file, text, message = VIOLATIONS[name]
    done = tidy({file: text})
    assert message in done.stdout
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert all(line.startswith(f"{file}:") for line in lines), "nothing else is accused"


LAWFUL_EDGES = {
    "long table, not a function": (
        "core/good.c",
        C + "static const int table[] = {\n" + "\t1,\n" * 80 + "};\n",
    ),
    "long struct": ("core/good.h", C + "struct s {\n" + "\tint x;\n" * 80 + "};\n"),
    "braces in strings and comments": (
        "core/good.c",
        C + 'int f(void)\n{\n\t/* { */\n\tcall("{{");\n\treturn 1;\n}\n' + "int x;\n" * 80,
    ),
    "words about floats": ("core/good.c", C + "/* no double, no malloc() */\n"),
    "arguments that are checked as printf's": (
        "core/good.h",
        C + "void say(char *f, ...) __attribute__((format(printf, 1, 2)));\n",
    ),
    "numbers that are no errors": (
        "core/good.c",
        C + "int f(int x)\n{\n\tcall(-22);\n\treturn x < 0 ? -1 : x - 22;\n}\n",
    ),
    "include guard": ("core/good.h", C + "#ifndef HOST_H\n#define HOST_H\n#endif\n"),
    "reminder with an issue": ("core/good.c", C + f"/* {TODO} #12: think */\n"),
    "long file that says why": (
        "core/good.c",
        C + f"/* {EXCUSE} the tables are one. */\n" + "int x;\n" * 700,
    ),
    "long function that says why": (
        "core/good.c",
        C + f"static int f(int x)\n{{\n\t/* {EXCUSE} it is one table. */\n" + LONG_BODY + "}\n",
    ),
    "docstring does not count": (
        "tools/good.py",
        PYTHON + 'def f():\n    """Long.\n' + "    line\n" * 90 + '    """\n    return 1\n',
    ),
    "relative and system paths": ("docs/good.md", "`#!/usr/bin/env`, `docs/work/x`, `~/tmp/x`\n"),
}


@pytest.mark.parametrize("name", LAWFUL_EDGES)
def test_what_only_looks_like_a_violation_is_accepted(tidy, name):
    file, text = LAWFUL_EDGES[name]
    assert tidy({file: text}).stdout == ""


def test_only_tracked_files_are_read_in_a_checkout(tidy, root, tmp_path):
    write_tree(tmp_path, {"core/bad.c": "int x;\n"})
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert tidy({}).returncode == 0
    subprocess.run(["git", "-C", tmp_path, "add", "core/bad.c"], check=True)
    assert "core/bad.c" in tidy({}).stdout


def test_a_folder_that_is_not_there_is_a_usage_error(root, tmp_path):
    done = subprocess.run(
        [sys.executable, root / "tools" / "tidy", tmp_path / "none"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "give the root of a checkout" in done.stderr


def test_this_checkout_is_tidy(root):
    done = subprocess.run(
        [sys.executable, root / "tools" / "tidy"], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0
