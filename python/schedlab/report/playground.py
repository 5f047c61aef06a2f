# SPDX-License-Identifier: MIT
"""One page in which a reader runs policies: no server, no network, nothing to install.

        index.html    simulator and policies as WebAssembly, programs, scripts: all of it

A program is what its workload is for one seed, so those of some seeds are compiled here: to
do it in the browser would be a second compiler of workloads, with a second generator of
random numbers, for a page that has to give the same record hash. A workload of the reader's own
has nothing random, and is compiled there (page/workload.js).

Must stay true: a run of the page has the record hash of the command that it shows.
Read next: page/playground.js; page/simulate.js, which runs the modules.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..errors import UsageError
from ..files import make_folder, write_text
from ..html import embedded, render
from ..metrics.dictionary import DICTIONARY, HEADLINES
from ..paths import include_folder, resource_root
from ..plots.gantt import Slices
from ..policy.build import build_policy
from ..policy.find import Policy, load_policy
from ..policy.wasm_build import LINK_FLAGS, SUPPORT, SUPPORT_FLAGS, policy_flags, simulator_module
from ..program import layout
from ..program.compiler import compile_workload
from ..program.file import Program
from ..runs.case import work_options
from ..stats.sentences import is_share, label
from ..stats.warnings import SURVIVAL, SurvivorsWarning
from ..workload.find import load_workload
from ..workload.model import Workload
from ..workload.phases import ATTRIBUTES
from ..workload.spec import parse_workload
from .over_time import pack_slices

PAGE = "index.html"
SEEDS = 5
SCRIPTS = (
    "numbers.js",
    "slices.js",
    "gantt.js",
    "viewer.js",
    "editor.js",
    "workload.js",
    "trace.js",
    "reported.js",
    "playground.js",
)
STYLES = ("report.css", "playground.css")
COMPILER = ("numbers.js", "compile.js")
WORKER = ("numbers.js", "measure.js", "simulate.js")
#: Of the compiler, which is a row of scripts.
PART_BYTES = 3 << 20
#: Compared at first.
POLICIES_SHOWN = ("rr", "mlfq")
_ERRORS = 134
_PLAIN = '[workload]\ntitle = "x"\nquestion = "x"\n[[task]]\nname = "x"\nphases = [{run = "1ms"}]\n'


@dataclass(frozen=True)
class Playground:
    """What `write_playground` wrote."""

    path: Path  #: The page.
    n_bytes: int  #: Its size.


class Archive:
    """Files in one deflated piece; equal ones are there once."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._known: dict[bytes, tuple[int, int]] = {}
        self.index: dict[str, tuple[int, int]] = {}

    def add(self, name: str, content: bytes) -> None:
        """Add a file."""
        if content not in self._known:
            self._known[content] = (len(self.data), len(content))
            self.data += content
        self.index[name] = self._known[content]

    def packed(self) -> str:
        """All of it, as slices.js unpacks it."""
        return base64.b64encode(zlib.compress(bytes(self.data), 9)).decode("ascii")


def write_playground(
    out: Path,
    *,
    workloads: Sequence[str],
    policies: Sequence[str],
    n_seeds: int = SEEDS,
    has_compiler: bool = False,
) -> Playground:
    """Write the page into a folder."""
    archive = Archive()
    about = about_page(
        archive,
        policies=[_add_policy(archive, name) for name in policies],
        workloads=[_add_workload(archive, name, n_seeds) for name in workloads],
        seeds=list(range(1, n_seeds + 1)),
    )
    make_folder(out)
    if has_compiler:
        about["compiler"] = _add_compiler(archive, out)
    text, _ = document(about | {"files": archive.index}, archive.packed())
    write_text(out / PAGE, text)
    return Playground(out / PAGE, len(text.encode()))


def about_page(
    archive: Archive,
    *,
    policies: Sequence[dict[str, Any]],
    workloads: Sequence[dict[str, Any]],
    seeds: Sequence[int],
) -> dict[str, Any]:
    """What a page is told besides its files, of which this adds the simulator."""
    archive.add("simulator", simulator_module().read_bytes())
    names = [policy["name"] for policy in policies]
    return {
        "policies": policies,
        "workloads": workloads,
        "seeds": seeds,
        "metrics": [
            {"name": name, "label": label(name), "unit": DICTIONARY[name].unit, "is_share": is_share(name),
             "direction": DICTIONARY[name].direction, "formula": DICTIONARY[name].formula}
            for name in HEADLINES
        ],
        "survival": [[count, words] for count, words, _ in SURVIVAL],
        "survival_hint": SurvivorsWarning.hint,
        "errors": {n: os.strerror(n) for n in range(1, _ERRORS)},
        "own": _own(),
        "shown": [name for name in POLICIES_SHOWN if name in names],
    }  # fmt: skip


def _add_policy(archive: Archive, name: str) -> dict[str, Any]:
    """A policy's module, and what the page says of it."""
    return add_policy(archive, name, load_policy(name))


def add_policy(archive: Archive, name: str, policy: Policy) -> dict[str, Any]:
    """The module of a policy that the command line calls `name`, and what the page says of it."""
    built = build_policy(policy, engine="wasm")
    if built.launch:
        raise UsageError(
            f"-p {name}: it has a launch file, which needs the number of CPUs; the page has no place for one"
        )
    archive.add(f"policy/{policy.name}", built.shared_object.read_bytes())
    archive.add(f"source/{policy.name}", policy.path.read_bytes())
    knobs = [
        {"name": knob.name, "unit": knob.unit, "minimum": knob.minimum, "maximum": knob.maximum,
         "default": built.values[knob.name], "names": knob.names, "text": knob.text}
        for knob in policy.knobs.values()
    ]  # fmt: skip
    return {"name": policy.name, "given": shlex.quote(name), "summary": policy.summary, "knobs": knobs}


def _add_workload(archive: Archive, name: str, n_seeds: int) -> dict[str, Any]:
    """A workload's programs, and what the page says of it."""
    workload = load_workload(name)
    if workload.happens:
        raise UsageError(f"{name}: it has {workload.happens}, which a page does not; leave them out")
    # With params the file alone is another workload.
    if workload.path is not None and workload.path.suffix == ".toml" and ":" not in name:
        archive.add(f"toml/{workload.name}", workload.path.read_bytes())
    for seed in range(1, n_seeds + 1):
        add_program(archive, f"{workload.name}/{seed}", compile_workload(workload, seed=seed))
    return {
        "name": workload.name, "given": shlex.quote(name), "title": workload.title, "question": workload.question, "tasks": workload.n_tasks,
        "cpus": max(workload.cpus, workload.cpus_min, 1), "cpus_min": max(workload.cpus_min, 1),
        "tick_ns": workload.tick_ns, "options": _options(workload),
    }  # fmt: skip


def add_program(archive: Archive, key: str, program: Program) -> None:
    """A workload of one seed, and what its tasks are called."""
    tasks = {"names": program.tasks["name"].tolist(), "weights": program.tasks["weight"].tolist()}
    archive.add(f"program/{key}", program.data)
    archive.add(f"tasks/{key}", json.dumps(tasks, separators=(",", ":")).encode())


def _own() -> dict[str, Any]:
    """What a workload of the reader's own is made with: tables of a program, and the options of one without params."""
    plain = parse_workload(_PLAIN, name="own")
    tables = {"header": layout.HEADER_DTYPE, "task": layout.TASK_DTYPE, "op": layout.OP_DTYPE}
    shown = {
        name: {
            "bytes": table.itemsize,
            "fields": [
                [field, offset, kind.itemsize]
                for field, (kind, offset, *_) in (table.fields or {}).items()
                if field != "magic"
            ],
        }
        for name, table in tables.items()
    }
    return {
        "options": _options(plain), "layout": shown, "magic": list(layout.MAGIC), "none": layout.NONE,
        "weight_given": 1 << ATTRIBUTES["weight"][0],
    }  # fmt: skip


def _add_compiler(archive: Archive, out: Path) -> dict[str, Any]:
    """Put the compiler beside the page, and what it needs into the page."""
    from .clang import CLANG_MAJOR, compiler_files

    for path in sorted(include_folder().rglob("*.h")):
        archive.add(f"include/{path.relative_to(include_folder()).as_posix()}", path.read_bytes())
    archive.add("support", (resource_root() / SUPPORT).read_bytes())
    packed = Archive()
    for name, content in compiler_files().items():
        packed.add(name, content)
    data = zlib.compress(bytes(packed.data), 6)
    folder = out / "compiler"
    make_folder(folder)
    parts: list[str] = []
    for start in range(0, len(data), PART_BYTES):
        parts.append(f"compiler/{len(parts):02}.js")
        text = base64.b64encode(data[start : start + PART_BYTES]).decode("ascii")
        write_text(out / parts[-1], f'schedlab.piece("{text}");\n')
    return {
        "parts": parts,
        "index": packed.index,
        "flags": policy_flags(CLANG_MAJOR),
        "support_flags": SUPPORT_FLAGS,
        "link": LINK_FLAGS,
    }


def _options(workload: Workload) -> list[str]:
    """Further words of a request to the simulator."""
    options = work_options(are_roots_woken=workload.are_roots_woken)
    return [word for option in options for word in option]


def _empty_chart(side: str) -> dict[str, Any]:
    """A chart without slices, to be filled by the first run."""
    import numpy as np

    none = np.zeros(0, np.int64)
    packed = pack_slices(Slices(none, none, none, none, none, none, 1))
    return {"policy": side, "seed": 1, "end_ns": 1, "shown_until_ns": 1, "cpus": 1, "n_slices": 0,
            "names": {}, "packed": packed}  # fmt: skip


def document(about: dict[str, Any], packed: str) -> tuple[str, str]:
    """The whole page, and the digest of its script."""
    from .. import __version__

    own = embedded(SCRIPTS, STYLES)
    charts = [_empty_chart("A"), _empty_chart("B")]
    text = render(
        "playground.html",
        version=__version__,
        **own,
        worker=embedded(WORKER, ())["script"],
        compile=embedded(COMPILER, ())["script"],
        # A page from a file may read other files as scripts alone.
        trusted=Markup(" 'strict-dynamic'") if "compiler" in about else "",
        charts=charts,
        metas=[{k: v for k, v in chart.items() if k != "packed"} for chart in charts],
        about=about,
        packed=packed,
    )
    return text, own["digest"]
