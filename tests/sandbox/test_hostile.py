# SPDX-License-Identifier: MIT
"""What hostile policies get; that compiling and running them opens nothing outside; the jail itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("wasmtime")
from sandbox.hostile import ATTACKS, MARK, PAGE, attack, prepare
from schedlab.errors import PolicyError
from schedlab.hosts.choose import why_no_option
from schedlab.model import Execution, Machine
from schedlab.policy import jail
from schedlab.policy.find import load_policy
from schedlab.runs.plan import make_plan
from schedlab.runs.run import run_plan


@pytest.fixture(scope="module", autouse=True)
def tools(need):
    need("clang-19")
    need("wasm-ld-19")


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    return prepare(tmp_path_factory.mktemp("program"))


def test_there_are_forty():
    assert len(ATTACKS) >= 40


@pytest.mark.full
@pytest.mark.parametrize("name", ATTACKS)
def test_what_it_gets(name, tmp_path, program):
    result = attack(name, tmp_path, program)
    assert ATTACKS[name].gets in result.error
    assert bool(ATTACKS[name].gets) == bool(result.error)
    assert "root:" not in result.error


def test_the_page_lists_them():
    rows = re.findall(r"^\| (.+?) \| (.+?) \|", PAGE.read_text().partition(MARK)[2], re.MULTILINE)
    assert rows[1:] == [(name, its.tries) for name, its in ATTACKS.items()]


@pytest.mark.full
def test_no_file_outside_is_opened(tmp_path, need, root):
    """strace of a process that compiles and runs all of them: what it opens, a harmless one does, too."""
    opened, log = {}, ""
    for names in (["pragmas"], [name for name in ATTACKS if name != "macros"]):
        script = tmp_path / "attacks.py"
        script.write_text(
            "import sys\nfrom pathlib import Path\n"
            f"sys.path.insert(0, {str(root / 'tests')!r})\n"
            "from sandbox.hostile import attack, prepare\n"
            f"folder = Path({str(tmp_path)!r})\nprogram = prepare(folder)\n"
            f"for name in {names!r}:\n    print(attack(name, folder, program).error)\n"
        )
        out = tmp_path / "strace"
        subprocess.run(
            [need("strace"), "-f", "-qq", "-e", "trace=%file,%network", "-o", out, sys.executable, script],
            check=True, capture_output=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)},
        )  # fmt: skip
        log = out.read_text()
        found = re.findall(r'\b(?:open|openat|creat|rename|unlink|mkdir)\([^"]*"(/[^"]*)".*\) = \d', log)
        opened[len(names)] = {path for path in found if not path.startswith(str(tmp_path))}
    harmless, hostile = opened.values()
    assert hostile - harmless == set()
    # Nothing has even tried to open it.
    assert re.search(r'open\w*\([^"\n]*"[^"\n]*hostile\.bpf\.c"', log)
    assert not re.search(r'open\w*\([^"\n]*"/etc/hostname"', log)
    assert not re.search(r"AF_INET|connect\(.*\) = 0", log)


@pytest.mark.skipif(jail.unavailable() is not None, reason="no landlock: Linux 5.13 or later")
def test_the_jail_gives_up_all_other_files(tmp_path):
    given, other = tmp_path / "given", tmp_path / "other"
    given.write_text("mine")
    other.write_text("yours")
    look = (
        "for path in sys.argv[1:]:\n    try: print(open(path).read())\n    except OSError as e: print(e.strerror)\n"
        "try: open(sys.argv[2] + 'x', 'w')\nexcept OSError as e: print(e.strerror)"
    )
    readable = [sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", str(given)]
    done = subprocess.run(
        [*jail.command(readable, []), sys.executable, "-S", "-c", "import sys\n" + look, given, other],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split("\n")[:3] == ["mine", "Permission denied", "Permission denied"], done.stderr


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "elsewhere").write_text("secret")
    folder = tmp_path / "submission"
    folder.mkdir()
    link = folder / "mine.bpf.c"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PolicyError, match="link to a file outside"):
        load_policy(str(link), is_inside=True)


@pytest.mark.parametrize("has_landlock", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        '#include "FILE"',
        "#include <FILE>",
        '#include "../FILE_NAME"',
        '#define WHERE "FILE"\n#include WHERE',
        '#if __has_include("FILE")\n#error it is there\n#endif',
        '#if __has_include("../FILE_NAME")\n#error it is there\n#endif',
        '#define PASTE(a, b) a##b\n#if PASTE(__has_, include)("FILE")\n#error it is there\n#endif',
        '#if __has_embed("FILE")\n#error it is there\n#endif',
        'static const char x[] = {\n#embed "FILE"\n};',
        '#pragma GCC dependency "FILE"',
        '_Pragma("GCC dependency \\"FILE\\"")',
        '#include "link.h"',
    ],
)
def test_whether_a_file_outside_exists_does_not_show(tmp_path, monkeypatch, text, has_landlock):
    from schedlab.policy import wasm_build

    if not has_landlock:
        monkeypatch.setattr(wasm_build, "_confined", lambda *_: [])
    said = []
    folder = tmp_path / "submission"
    folder.mkdir()
    (tmp_path / "there.h").write_text("int x;\n")
    for name in ("there.h", "absent"):
        (folder / "link.h").unlink(missing_ok=True)
        (folder / "link.h").symlink_to(tmp_path / name)
        source = folder / "mine.bpf.c"
        source.write_text(
            text.replace("FILE_NAME", name).replace("FILE", str(tmp_path / name)) + "\nint oops\n"
        )
        with pytest.raises(PolicyError) as error:
            wasm_build.compile_wasm(load_policy(str(source), is_inside=True))
        # As long as the name is, so is the mark below it.
        said.append(re.sub(r"\^~*", "^", str(error.value).replace(name, "NAME")))
    assert said[0] == said[1]
    assert "it is there" not in said[0]


def test_sandbox_is_the_simulators(tmp_path):
    assert why_no_option(Machine(), Execution(host="sim", is_sandboxed=True)) == []
    assert (
        "--sandbox: means nothing on --host linux"
        in why_no_option(Machine(), Execution(host="linux", is_sandboxed=True))[0]
    )
    runs = [
        run_plan(make_plan(["mixed"], ["rr"], tmp_path / str(yes), sandbox=yes)).runs[0]
        for yes in (False, True)
    ]
    assert [(run["host"], run["is_sandboxed"], run["consistency"]) for run in runs] == [
        ("sim", False, "ok"),
        ("sim", True, "ok"),
    ]
    assert len({run["record_hash"] for run in runs}) == 1
