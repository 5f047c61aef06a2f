# SPDX-License-Identifier: MIT
"""`schedlab new`: the beginning of a policy: its C file, a workload, and a test of both.

The three files come from templates/, in which the policy is called `my_policy`.
They are a whole: the policy runs, natively and under Linux, and its test passes
before anything is changed.

Must stay true: no file is ever overwritten; either all three are written or none.
Read next: templates/policy.bpf.c.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from .. import paths
from ..errors import UsageError
from .answer import print_json
from .options import JsonOption

TEMPLATES = Path(__file__).resolve().parent / "templates"
#: What the policy is called in the templates.
PLACEHOLDER = "my_policy"
#: Linux keeps 16 bytes of a name of a BPF program or map; more is for people.
NAME_LENGTH_MAX = 32


@dataclass(frozen=True)
class NewPolicy:
    """The files of a new policy, and what to type next."""

    #: `policy`, `workload`, `test`: The files that were written.
    policy: Path
    workload: Path
    test: Path
    run_command: str  #: Compares the policy with round robin on its workload.
    test_command: str  #: Runs its test.

    @property
    def files(self) -> tuple[Path, Path, Path]:
        """All three, in the order in which to read them."""
        return self.policy, self.workload, self.test


def new(
    name: Annotated[str, typer.Argument(help="What to call it: small letters, digits and _.")],
    folder: Annotated[Path, typer.Option(help="Where the files go.")] = Path("."),
    as_json: JsonOption = False,
) -> None:
    """Write a policy that works, a workload that shows it, and its test."""
    made = new_policy(name, folder=folder)
    if as_json:
        print_json({"policy": str(made.policy), "workload": str(made.workload), "test": str(made.test),
                    "run_command": made.run_command, "test_command": made.test_command})  # fmt: skip
        return
    for path, about in zip(
        made.files,
        ("the policy: read this first", "work that shows what it does", "what it promises"),
        strict=True,
    ):
        print(f"wrote {path}, {about}")
    print(f"\nCompare it with round robin:\n  {made.run_command}\nRun its test:\n  {made.test_command}")


def new_policy(name: str, *, folder: str | Path = ".") -> NewPolicy:
    """Write a policy that works, a workload that shows it, and its test."""
    check_name(name)
    folder = Path(folder)
    files = {
        "policy.bpf.c": folder / f"{name}.bpf.c",
        "workload.toml": folder / f"{name}_test.toml",
        "test.py.in": folder / f"test_{name}.py",
    }
    existing = [str(path) for path in files.values() if os.path.lexists(path)]
    if existing:
        raise UsageError(
            f"{', '.join(existing)}: there already, and nothing is overwritten; choose another "
            "name or another --folder"
        )
    policy, workload, test = files.values()
    run_command, test_command = _commands(policy, workload, test)
    texts = {
        path: (TEMPLATES / template).read_text(encoding="utf-8").replace(PLACEHOLDER, name)
        for template, path in files.items()
    }
    _write_all(folder, texts)
    return NewPolicy(policy, workload, test, run_command, test_command)


def check_name(name: str) -> None:
    """Refuse a name that C, Linux or the command line would stumble over.

    >>> check_name("my-policy")
    Traceback (most recent call last):
    schedlab.errors.UsageError: 'my-policy' cannot name a policy: small letters, digits \
and '_', a letter first, at most 32 characters; 'my_policy' would do
    """
    if not re.fullmatch(rf"[a-z][a-z0-9_]{{0,{NAME_LENGTH_MAX - 1}}}", name):
        near = re.sub(r"(\.bpf)?\.c$", "", Path(name).name).lower()
        near = re.sub(r"\W", "_", near, flags=re.ASCII).lstrip("_0123456789")[:NAME_LENGTH_MAX]
        hint = f"; '{near}' would do" if near.strip("_") and not _is_taken(near) else ""
        raise UsageError(
            f"{name!r} cannot name a policy: small letters, digits and '_', a letter first, "
            f"at most {NAME_LENGTH_MAX} characters{hint}"
        )
    if reason := _is_taken(name):
        raise UsageError(f"{name!r} cannot name a policy: {reason}; try 'my_{name}'")


def _is_taken(name: str) -> str:
    """Say whose the name is already; empty where nobody's."""
    from ..policy.find import list_policies

    if name in list_policies():
        return "schedlab comes with a policy of that name"
    prefix = name.partition("_")[0]
    if prefix in ("scx", "sl", "bpf"):
        return f"names in {prefix}_ belong to " + ("schedlab" if prefix == "sl" else "Linux")
    return ""


def _commands(policy: Path, workload: Path, test: Path) -> tuple[str, str]:
    """What to type, from the folder that the user is in."""
    # `--policy mine.bpf.c` is a file as well, but a `./` says so to a reader.
    own = str(policy) if "/" in str(policy) else f"./{policy}"
    compared = shlex.join(["run", str(workload), "--policy", f"rr,{own}", "--seeds", "10"])
    tested = f"{paths.own_command()} test" if paths.in_checkout() else "python -m pytest"
    return f"{paths.own_command()} {compared}", f"{tested} {shlex.quote(str(test))}"


def _write_all(folder: Path, texts: dict[Path, str]) -> None:
    """Write every file, or none."""
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            # "x": a file that appeared since we looked is not overwritten either.
            with path.open("x", encoding="utf-8") as file:
                written.append(path)
                file.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        place = error.filename or folder
        raise UsageError(f"{place}: cannot be written: {error.strerror}") from error
