# SPDX-License-Identifier: MIT
"""Where the files that schedlab needs are, in a checkout and in a wheel.

Everything that is not Python (headers, policies, workloads, the simulator) is
found from one root, so that nothing else in the package guesses a place.

Must stay true: this module imports nothing heavy; every command starts here.
Read next: policy/find.py, the main caller.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from functools import partial
from pathlib import Path

#: A file that only a schedlab tree has; its presence makes a folder a root.
MARKER = Path("include") / "scx" / "common.bpf.h"


def resource_root() -> Path:
    """Folder that holds `include/`, `policies/` and `workloads/`."""
    from .errors import SchedlabError

    given = os.environ.get("SCHEDLAB_ROOT")
    if given:
        root = Path(given).expanduser().resolve()
        if not (root / MARKER).is_file():
            raise SchedlabError(
                f"SCHEDLAB_ROOT={given}: no {MARKER} in that folder; set it to a "
                "schedlab checkout, or unset it"
            )
        return root
    package = Path(__file__).resolve().parent
    for root in (package.parent.parent, package / "_data"):
        if (root / MARKER).is_file():
            return root
    raise SchedlabError(
        f"{package}: neither a checkout ({MARKER} beside python/) nor the _data folder "
        "of a wheel; reinstall schedlab, or set SCHEDLAB_ROOT to a checkout"
    )


def in_checkout() -> bool:
    """Whether the root is a source tree (it has `core/`) rather than a wheel."""
    return (resource_root() / "core").is_dir()


def own_command() -> str:
    """How a user starts schedlab from the folder that he is in, quoted for a shell."""
    if not in_checkout():
        return "schedlab"
    root = resource_root()
    return "./lab" if Path.cwd().resolve() == root else shlex.quote(str(root / "lab"))


def command_line() -> str:
    """Give the words that this process was started with, as a shell takes them."""
    return " ".join([own_command(), *(shlex.quote(word) for word in sys.argv[1:])])


def include_folder() -> Path:
    """Folder given to the compiler with `-I`."""
    return resource_root() / "include"


def policies_folder() -> Path:
    """Folder with one `NAME.bpf.c` per policy."""
    return resource_root() / "policies"


def compiled_folder() -> Path:
    """Folder with the compiled policies of a wheel, and the name of the compiler; a checkout has none."""
    return resource_root() / "compiled"


def _program(host: str, name: str) -> Path:
    """Where a program of ours is, or would be: in a wheel, or in the build folder."""
    root = resource_root()
    in_wheel, in_build = root / "bin" / name, root / "build" / "hosts" / host / name
    # The last is of `pip install -e .`; see tools/build_backend.py.
    for place in (in_wheel, in_build, root / "build-editable" / "hosts" / host / name):
        if place.is_file():
            return place
    return in_build if in_checkout() else in_wheel


#: Without arguments: the path of a program, whether or not it has been built.
simulator = partial(_program, "sim", "schedlab-sim")
interleaver = partial(_program, "check", "schedlab-sim-check")
launcher = partial(_program, "linux", "schedlab-launch")
linux_runner = partial(_program, "linux", "schedlab-play")
recorder = partial(_program, "linux", "schedlab-record")
supervisor = partial(_program, "common", "schedlab-supervise")
uthreads_runner = partial(_program, "uthreads", "schedlab-uthreads")


def why_unusable(program: Path) -> str | None:
    """Say why a program of ours cannot be started."""
    if not program.is_file():
        hint = "run ./lab once, which builds it" if in_checkout() else "reinstall schedlab"
        if not in_checkout() and not program.parent.is_dir():
            return f"{program.name} is not in this wheel, which is for any system; one for Linux has it"
        return f"{program} does not exist; {hint}"
    if not os.access(program, os.X_OK):
        return f"{program} may not be executed; chmod +x it"
    return None


def cache_folder(name: str) -> Path:
    """Folder for what can be made again, created when missing."""
    given = os.environ.get("XDG_CACHE_HOME")
    if given:
        base = Path(given) / "schedlab"
    elif in_checkout():
        base = resource_root() / ".cache"
    else:
        # "~" itself for a user without a home, as in containers.
        base = Path(os.path.expanduser("~")) / ".cache" / "schedlab"
    # Where there are no numbers of users, as on Windows, stat() says 0 of each file.
    user = os.getuid() if hasattr(os, "getuid") else 0
    for candidate in filter(Path.is_absolute, (base, Path(tempfile.gettempdir()) / f"schedlab-{user}")):
        folder = candidate / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        # Code is loaded from here: a folder that others may write is not ours.
        status = folder.stat()
        if os.access(folder, os.W_OK) and status.st_uid == user:
            return folder
    return Path(tempfile.mkdtemp(prefix=f"schedlab-{name}-"))
