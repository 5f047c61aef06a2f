# SPDX-License-Identifier: MIT
"""Record what Linux's scheduler does, and leave it as the folder of a run.

        DIR/run.json, records.slr, records.parquet, tasks.parquet, metrics.parquet

are those of every other host, so that all that reads runs reads this one. Of a
recording that did not go well DIR/events.slev stays, which `schedlab import` reads.

Must stay true: a recording is checked for consistency as a simulation is; one that is
not whole says so and shows no numbers, but its records can be drawn.
Read next: hosts/linux/recorder.py, which drives the recorder; replay.py.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import __version__
from ..errors import NotFoundError, RecordError, SchedlabError, UsageError
from ..files import make_folder, write_json
from ..hosts.linux.launch import Command, Launcher
from ..hosts.linux.machine import describe_machine, find_group, steal_by_cpu, steal_since
from ..hosts.linux.recorder import Captured, Converted, Recorder, convert_events, import_events
from ..metrics import consistency
from ..metrics.dictionary import compute_metrics
from ..metrics.disturbance import disturbance
from ..metrics.tables import metrics_table, tasks_table
from ..metrics.timeline import Timeline
from ..policy.linux_class import LinuxClass
from ..program import layout
from ..records.file import hash_file, read_records, records_table, release
from ..records.foreign import REMEDY, Source, find_missing, find_source
from .machine_costs import costs_of, slice_of_linux

if TYPE_CHECKING:
    import polars as pl

EVENTS = "events.slev"
#: What an earlier run may have left in a folder; `run.json`, which vouches for the others, goes first.
_LEFT = ("run.json", "records.slr", "records.parquet", "tasks.parquet", "metrics.parquet")
#: The keepers of the launcher are its children, the commands theirs.
GENERATION_OF_COMMANDS = 2


@dataclass(frozen=True)
class Subject:
    """What was recorded, in the words of `run.json`."""

    name: str  #: In place of a workload's name.
    title: str  #: One line for people.
    policy: str = "SCHED_OTHER"  #: Who decided, such as `"SCHED_OTHER"`.


def record_command(
    argv: Sequence[str],
    out: Path,
    *,
    linux_class: LinuxClass,
    cpus: tuple[int, ...] = (),
    timeout_ns: int,
    output: Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run a command and record its whole tree; `options` are those of `Recorder`."""
    events, steal = _prepare(out), steal_by_cpu()
    command = Command(tuple(argv), linux_class, cpus, output)
    report = None
    with _all_or_nothing(out, events), Recorder(**options) as recorder:
        try:
            with Launcher() as launcher:
                recorder.follow(events, pid=launcher.pid, generation=GENERATION_OF_COMMANDS)
                report = launcher.run([command], timeout_ns=timeout_ns)["commands"][0]
        except KeyboardInterrupt:
            pass  # the launcher has ended the tree; what is recorded is kept
        captured, complaint = _stop(recorder)
    if report is None:
        complaint = complaint or "it was interrupted"
    elif report["has_timed_out"]:
        complaint = (
            complaint or f"the command was ended after {timeout_ns / 1e9:g} s; give more with --timeout"
        )
    subject = Subject(Path(argv[0]).name, shlex.join(argv), linux_class.name)
    window = (report["start_ns"], report["tree_end_ns"]) if report else (None, None)
    run = make_run(
        out,
        events,
        subject,
        captured=captured,
        complaint=complaint,
        window=window,
        steal_ns=steal_since(steal),
        slice_ns=linux_class.slice_ns or slice_of_linux(),
    )
    # With what is needed to run it again.
    again = {"argv": [*argv], "cpus": [*cpus], "folder": os.getcwd()}
    run["command"] = report and report | again
    return _finish(out, events, run)


def record_others(
    out: Path,
    *,
    for_ns: int,
    pid: int | None = None,
    comm: str | None = None,
    cgroup: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Record processes that run already, for some time: one, those of a name or of a cgroup, or all."""
    name, what = "machine", "this machine"
    begin: Callable[[Recorder, Path], None] = Recorder.record_all
    if pid is not None:
        _check_process(pid)
        name, what, begin = f"pid-{pid}", f"process {pid}", partial(Recorder.follow, pid=pid)
    elif comm is not None:
        name, what, begin = comm, f"tasks named {comm}", partial(Recorder.follow_name, comm=_cut_name(comm))
    elif cgroup is not None:
        name, what = Path(cgroup).name or "root", f"cgroup {cgroup}"
        begin = partial(Recorder.follow_group, folder=_folder_of_group(cgroup))
    events, steal, slice_ns = _prepare(out), steal_by_cpu(), slice_of_linux(pid)
    with _all_or_nothing(out, events), Recorder(**options) as recorder:
        try:
            begin(recorder, events)
            _wait(pid, for_ns)
        except KeyboardInterrupt:
            pass
        captured, complaint = _stop(recorder)
    subject = Subject(name, f"{what}, for {for_ns / 1e9:g} s", "Linux")
    run = make_run(
        out,
        events,
        subject,
        captured=captured,
        complaint=complaint,
        steal_ns=steal_since(steal),
        slice_ns=slice_ns,
    )
    return _finish(out, events, run)


def import_trace(
    file: Path, out: Path, *, name: str | None = None, is_anonymous: bool = False
) -> dict[str, Any]:
    """Make a run of a trace: of another tool, or left by a recorder."""
    source = find_source(file)
    subject = Subject(name or file.name.split(".")[0], str(file), "Linux")
    if is_anonymous:
        subject = Subject(name or "anonymous", "an imported trace, anonymous", "Linux")
    scratch = (out / EVENTS).resolve().with_suffix(".part")
    make_folder(out)
    try:
        # What cannot be read replaces nothing.
        found = None
        if source.form != "events" or is_anonymous:
            found = _read_foreign(source, scratch, is_anonymous=is_anonymous)
        _clear(out)
        complaint = found["complaint"] if found else None
        run = make_run(out, scratch if found else file, subject, complaint=complaint)
        run["recording"]["missing"] = find_missing(found) if found and source.form != "events" else []
        run = _finish(out, None, run)
    finally:
        _drop(out, scratch)
    # Events that stay are those of the run that is there.
    if (out / EVENTS).exists() and not (out / EVENTS).samefile(file):
        (out / EVENTS).unlink()
    return run


def _read_foreign(source: Source, events: Path, *, is_anonymous: bool) -> dict[str, Any]:
    """Make events of a trace; a trace in which nobody knows what ran is refused."""
    try:
        found = import_events(source, events, is_anonymous=is_anonymous)
    except RecordError as error:
        if source.form != "text":
            raise
        raise RecordError(f"{error}; correct or delete the line, or {REMEDY}") from error
    if not found["events"]["sched_switch"] and source.form != "events":
        why = f" ({found['complaint']})" if found["complaint"] else ""
        raise RecordError(f"{source.name}: no sched_switch in it, so nobody knows who ran{why}; {REMEDY}")
    return found


def _clear(out: Path) -> None:
    """Remove what an earlier run left: beside a new one it would be a lie."""
    for name in _LEFT:
        with contextlib.suppress(OSError):
            (out / name).unlink()


def _prepare(out: Path) -> Path:
    """Make the folder, and room in it."""
    make_folder(out)
    _clear(out)
    return (out / EVENTS).resolve()


@contextlib.contextmanager
def _all_or_nothing(out: Path, events: Path) -> Iterator[None]:
    """Leave nothing of a recording that could not begin."""
    try:
        yield
    except SchedlabError:
        _drop(out, events)
        raise


def _drop(out: Path, events: Path) -> None:
    """Remove what was recorded, and the folder if that is all there was."""
    events.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # other things are in it
        out.rmdir()


def _check_process(pid: int) -> None:
    """It is there, and is no thread of another: /proc answers to the numbers of threads, too."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError as error:
        raise NotFoundError(f"--pid {pid}: there is no such process") from error
    process = next(int(line.split()[1]) for line in lines if line.startswith("Tgid:"))
    if process != pid:
        raise UsageError(
            f"--pid {pid}: is a thread of process {process}; give --pid {process}, which records all "
            "its threads"
        )


def _cut_name(comm: str) -> str:
    """As Linux keeps names: their first 15 bytes."""
    name = comm.encode()[:15].decode(errors="ignore")
    if not name or not name.isprintable():
        raise UsageError(f"--comm {comm!r}: a task's name, as in /proc/PID/comm")
    return name


def _folder_of_group(name: str) -> Path:
    """Where a cgroup is; one without processes may get some."""
    folder = find_group(name)
    if folder is None or "\t" in str(folder):
        raise NotFoundError(
            f"--cgroup {name}: there is no such cgroup; /proc/PID/cgroup names that of a process, "
            "from the hierarchy's root on"
        )
    return folder


def _wait(pid: int | None, for_ns: int) -> None:
    """Until the time is over, or the process has ended."""
    deadline = time.monotonic_ns() + for_ns
    while (left := deadline - time.monotonic_ns()) > 0:
        if pid is not None and not Path(f"/proc/{pid}").is_dir():
            return
        time.sleep(min(left / 1e9, 0.1))


def _stop(recorder: Recorder) -> tuple[Captured | None, str | None]:
    """How the recording went, and what is wrong with it."""
    try:
        captured = recorder.stop()
    except SchedlabError as error:
        return None, f"{error} What it had recorded by then is here"
    if captured.write_error:
        after_s = max(captured.write_error_ns - captured.begin_ns, 0) / 1e9
        return captured, (
            f"after {after_s:.2f} s the events could not be written any more ({captured.write_error}); "
            "what was recorded until then is here: make room and record again"
        )
    return captured, None


def make_run(
    out: Path,
    events: Path,
    subject: Subject,
    *,
    captured: Captured | None = None,
    complaint: str | None = None,
    window: tuple[int | None, int | None] = (None, None),
    steal_ns: dict[int, int] | None = None,
    slice_ns: int | None = None,
) -> dict[str, Any]:
    """Turn recorded events into the files of a run, and judge it."""
    try:
        converted = convert_events(events, out / "records.slr", origin_ns=window[0], end_ns=window[1])
    except RecordError as error:
        # What went wrong first is the cause of what went wrong now.
        if complaint is None:
            raise
        raise RecordError(f"{complaint}; now: {error}") from error
    if not converted.is_whole and complaint is None:
        complaint = "the recorder was ended before it could finish; what it had written by then is here"
    run = _blank_run(out, subject, converted)
    run["recording"] = {
        "slice_ns": slice_ns or converted.slice_ns or None,
        "events": converted.n_events,
        "lost": converted.n_lost,
        "inferred": converted.n_inferred,
        "repairs": converted.n_repairs,
        "wakeups": converted.n_wakeups,
        "unwoken": converted.n_unwoken,
        "clocks_differ_ns": converted.clocks_differ_ns,
        "recorder_cpu_ns": captured.cpu_ns if captured else None,
        "is_realtime": captured.is_realtime if captured else None,
        "recorder_ns": converted.recorder_ns,
    }
    _judge(run, out, converted, steal_ns)
    if run["error"] is None and not converted.tasks:
        run["error"], run["error_kind"] = (
            "it never ran while it was recorded: give more time with --for; in a container with process numbers of its "
            "own, record --system",
            "records",
        )
    if complaint is not None:
        run |= {"error": complaint, "error_kind": "host", "metrics": {}}
    run["status"] = "ok" if run["error"] is None else "failed"
    return run


def _blank_run(out: Path, subject: Subject, converted: Converted) -> dict[str, Any]:
    """The keys of every `run.json`, as far as a recording knows them."""
    return {
        "workload": subject.name, "title": subject.title, "question": "What did Linux do with it?",
        "policy": subject.policy, "host": "linux", "cpus": converted.n_cpus, "seed": 1,
        "status": "failed", "error": None, "error_kind": None, "program_hash": "", "policy_hash": None,
        "record_hash": None, "consistency": None, "physics": None,
        "environment": {
            "schedlab": __version__, "python": platform.python_version(), "system": platform.platform(),
            "machine": platform.machine(), "compiler": None, **describe_machine(),
        },
        "started_ns": time.time_ns(), "tick_ns": converted.tick_ns, "costs": [], "io": [], "topology": "",
        "knobs": {}, "directory": str(out), "metrics": {}, "tasks": converted.tasks,
    }  # fmt: skip


def _write_table(table: pl.DataFrame, path: Path, compression: Any) -> None:
    """Write a table of the run, or say why not."""
    from polars.exceptions import PolarsError

    try:
        table.write_parquet(path, compression=compression)
    except (OSError, PolarsError) as error:
        raise RecordError(
            f"{path}: cannot be written: {error}; a recording's events are kept in "
            f"{path.parent / EVENTS}: make room, then schedlab import"
        ) from error


def _judge(run: dict[str, Any], out: Path, converted: Converted, steal_ns: dict[int, int] | None) -> None:
    """The consistency check first; then the tables, and numbers only if all is well."""
    import polars as pl

    records = read_records(out / "records.slr")
    timeline = Timeline(records)
    run["record_hash"] = hash_file(out / "records.slr")
    horizon_ns = 0 if converted.have_all_ended else records.end_ns
    run["consistency"] = consistency.check(timeline, consistency.Expectations(horizon_ns=horizon_ns))
    run["physics"] = run["consistency"]  # deprecated
    timeline.forget_spans()
    _write_table(records_table(records), out / "records.parquet", "lz4")
    release(records.events)
    names = np.array([task["name"] or f"pid-{task['pid']}" for task in converted.tasks])
    classes = np.unique(names, return_inverse=True)[1] if len(names) else names
    if run["consistency"] != "ok":
        run["error"] = f"the recording is impossible, so its numbers are withheld: {run['consistency']}"
        run["error_kind"] = "consistency"
        return
    weight = np.array([layout.weight_of_priority(task["priority"]) for task in converted.tasks], np.int64)
    metrics = compute_metrics(timeline, weight=weight)
    table = tasks_table(metrics, names=names.tolist(), classes=classes.tolist())
    shown = table["task"].cast(pl.Int64) - 1
    for name in ("pid", "priority"):
        values = pl.Series(f"linux_{name}", [task[name] for task in converted.tasks], dtype=pl.Int64)
        table = table.with_columns(values.gather(shown))
    _write_table(table, out / "tasks.parquet", "zstd")
    _write_table(metrics_table(metrics), out / "metrics.parquet", "zstd")
    run["metrics"] = metrics.run
    run["recording"]["costs"] = costs_of(records) | converted.machine_costs
    run["recording"]["disturbance"] = disturbance(timeline, steal_ns=steal_ns)


def _finish(out: Path, events: Path | None, run: dict[str, Any]) -> dict[str, Any]:
    """Write `run.json` last; drop the events where nothing is wrong."""
    try:
        write_json(out / "run.json", run)
    except OSError as error:
        raise RecordError(
            f"{out}/run.json: cannot be written: {error.strerror}; the recorded events are in "
            f"{out / EVENTS}: make room, then schedlab import"
        ) from error
    if events is not None and run["status"] == "ok":
        os.unlink(events)
    return run
