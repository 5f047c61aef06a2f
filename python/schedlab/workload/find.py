# SPDX-License-Identifier: MIT
"""Find a workload by its name or file, whatever its format, and list those that come with schedlab.

Must stay true: importing this module imports neither NumPy nor Polars, since
the command line reads workloads before it knows whether it will run any.
Read next: spec.py, which reads the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import paths
from ..errors import NotFoundError, UsageError, did_you_mean
from ..toml_file import read_source
from .model import Workload
from .spec import read_workload


@dataclass(frozen=True)
class WorkloadInfo:
    """What a list of workloads shows."""

    name: str  #: What `load_workload` accepts, such as ``"report-1/switch"``.
    path: Path  #: The file.
    #: `title`, `question`: One line each.
    title: str
    question: str
    cpus: int  #: CPUs it is meant for.
    n_tasks: int  #: Task instances with default params.
    params: Mapping[str, str]  #: Default value as text, by name.


def workloads_folder() -> Path:
    """Find the folder of the workloads that come with schedlab."""
    return paths.resource_root() / "workloads"


def workload_names() -> list[str]:
    """Names of the workloads that come with schedlab, sorted; none is read."""
    folder = workloads_folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))


def list_workloads() -> list[WorkloadInfo]:
    """List the workloads that come with schedlab.

    Returns
    -------
    list of WorkloadInfo
        Sorted by name.

    Raises
    ------
    SpecError
        If one of them is damaged.
    """
    found = []
    for known in workload_names():
        workload = load_workload(known)
        params = {name: param.default for name, param in workload.params.items()}
        found.append(
            WorkloadInfo(
                workload.name,
                workloads_folder() / f"{known}.toml",
                workload.title,
                workload.question,
                workload.cpus,
                workload.n_tasks,
                params,
            )
        )
    return found


def load_workload(path_or_name: str | Path, *, params: Mapping[str, object] | None = None) -> Workload:
    """Read a workload by name or from a file.

    >>> load_workload("poisson:rho=0.5").params["rho"].text
    '0.5'
    """
    text, overrides = _split_params(str(path_or_name))
    overrides |= dict(params or {})
    as_file = Path(text)
    if as_file.suffix in (".toml", ".csv", ".json"):
        if not as_file.is_file():
            raise NotFoundError(f"{text}: no such file{_workload_hint(as_file.stem)}")
        if as_file.suffix == ".csv":
            from .textbook import load_textbook

            if overrides:
                raise UsageError(f"{text}: a CSV workload has no params")
            return load_textbook(as_file)
        if as_file.suffix == ".json":
            from .rtapp import load_rtapp

            return load_rtapp(as_file, params=overrides)
        return _load_file(as_file, overrides, name=_own_name(as_file))
    path = workloads_folder() / f"{text}.toml"
    if not path.is_file():
        raise NotFoundError(f"unknown workload {text!r}{_workload_hint(text)}")
    return _load_file(path, overrides, name=text)


def load_scaled(path_or_name: str | Path, factor: float) -> Workload:
    """Read a workload with less work in it, or more."""
    workload = load_workload(path_or_name)
    if factor == 1:
        return workload
    scaled = {name: param.scaled(factor) for name, param in workload.params.items() if param.scales}
    if not scaled:
        raise UsageError(
            f"--scale {factor:g}: no param of {workload.name} says how much work there is; "
            "mark one with 'scales = true', or leave --scale out"
        )
    return load_workload(path_or_name, params=scaled)


def _split_params(text: str) -> tuple[str, dict[str, object]]:
    base, colon, rest = text.partition(":")
    overrides: dict[str, object] = {}
    for part in rest.split(",") if colon else []:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{text!r}: write params as {base}:name=value,name=value")
        overrides[key.strip()] = value.strip()
    return base, overrides


def _workload_hint(word: str) -> str:
    return did_you_mean(word, workload_names()) or "; `schedlab workloads` lists them"


def _own_name(path: Path) -> str:
    """Name of a file: its place below workloads/, or its stem elsewhere."""
    folder = workloads_folder().resolve()
    if path.resolve().is_relative_to(folder):
        return path.resolve().relative_to(folder).with_suffix("").as_posix()
    return path.stem


def _load_file(path: Path, overrides: Mapping[str, object], *, name: str) -> Workload:
    root = paths.resource_root()
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    return read_workload(read_source(path, name=str(shown)), overrides, name=name, path=path)
