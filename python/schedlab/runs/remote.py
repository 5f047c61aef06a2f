# SPDX-License-Identifier: MIT
"""Runs that are done by an executor: other processes, or other machines.

        here:    prepare, send --- work item: workload, policy, knobs, seed ---->
        worker:                       compile, run, judge, in a folder of its own
        here:    collect, write  <--- the run, and all files of its folder -------

A worker needs this version of schedlab and a C compiler, but no folder of ours:
all else travels. A work item depends on nothing but what is in it, so one that was
lost with its worker may be done again, by another one, with the same result.

Must stay true: a worker's death fails only the runs that no other worker could do.
Read next: case.py, which does a run; run.py and api.py, which call this.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from .. import paths
from ..errors import SchedlabError, UnavailableError, UsageError
from ..files import write_files
from ..hosts.choose import build_for, unavailable_reason
from ..model import Execution
from ..policy.build import BuiltPolicy, find_compiler
from ..policy.find import load_policy, own_files
from .case import (
    Case,
    Programs,
    RunContext,
    blank_run,
    do_case,
    environment_of,
    folder_of,
    listed,
    mark_failed,
    run_case,
    write_run,
)
from .plan import Plan, host_of

_SCHEME = "dask://"
_CONNECT_SECONDS = 10
#: How long workers may take to appear: a batch system starts them when it can.
_WORKERS_SECONDS = 60


@dataclass(frozen=True)
class Source:
    """A policy as it travels."""

    root: str  #: The folder here, for messages.
    main: str  #: The policy's file, relative to it.
    files: Mapping[str, bytes]  #: It and its own headers, by relative path; those of schedlab stay behind.
    content_hash: str  #: Of all of them, schedlab's headers included.
    values: Mapping[str, int]  #: Every knob.


@dataclass(frozen=True)
class WorkItem:
    """One run for a worker, whole: it can be pickled."""

    version: str  #: Ours.
    plan: Plan  #: What the run is a part of; its folder is ours.
    case: Case  #: The run.
    source: Source  #: Who decides.
    wanted: tuple[str, ...] | None  #: Files of the run's folder that come back; None: all.


@dataclass(frozen=True)
class Answer:
    """What a worker sends back."""

    run: dict[str, Any]  #: As for `run.json`; its folder is the worker's, and gone.
    files: dict[str, Any]  #: dict of str to bytes: contents by name.
    seconds: float  #: How long it took on the worker's wall clock.


@dataclass(frozen=True)
class Sent:
    """Runs under way."""

    context: RunContext  #: What they share.
    cases: list[Any]  #: list of Case: all of them.
    #: list of Future: of those that were sent; the others could not be.
    futures: list[Any] = field(default_factory=list)
    #: Gets (case, future or exception) when a run is done.
    done: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    seconds: list[Any] = field(default_factory=list)  #: How long each answered run took.


# ---- here -------------------------------------------------------------------


def send(
    context: RunContext, cases: list[Case], executor: Executor, *, wanted: tuple[str, ...] | None = None
) -> Sent:
    """Hand runs to an executor."""
    from .. import __version__

    sent = Sent(context, cases)
    sources = {name: _pack(built) for name, built in context.built.items() if isinstance(built, BuiltPolicy)}
    try:
        for case in cases:
            source = sources.get(case.policy_name)
            if source is None:
                # What does not compile here needs no worker to fail.
                sent.done.put((case, None))
                continue
            item = WorkItem(__version__, context.plan, case, source, wanted)
            try:
                future = executor.submit(do_item, item)
            except (BrokenExecutor, RuntimeError) as error:
                sent.done.put((case, error))
                continue
            sent.futures.append(future)
            future.add_done_callback(partial(_put, sent, case))
    except BaseException:
        cancel(sent)
        raise
    return sent


def _put(sent: Sent, case: Case, future: Future[Any]) -> None:
    """Tell `collect` that a run is done."""
    sent.done.put((case, future))


def collect(
    sent: Sent, on_result: Callable[[dict[str, Any]], None] | None = None
) -> tuple[list[dict[str, Any]], bool]:
    """Wait for runs, and write their folders as they come."""
    results: dict[int, dict[str, Any]] = {}
    is_interrupted = False
    try:
        while len(results) < len(sent.cases):
            case, future = sent.done.get()
            results[case.position] = run = _take(sent, case, future)
            if on_result:
                on_result(run)
    except KeyboardInterrupt:
        is_interrupted = True
        cancel(sent)
    return [results[position] for position in sorted(results)], is_interrupted


def cancel(sent: Sent) -> None:
    """Let go of what has not begun."""
    for future in sent.futures:
        future.cancel()


def _pack(built: BuiltPolicy) -> Source:
    """Put a policy's own files together; schedlab's headers are everywhere the same."""
    root, files = own_files(built.policy.path)
    return Source(
        root=str(root),
        main=next(iter(files)),
        files=files,
        content_hash=built.policy.content_hash,
        values=built.values,
    )


def _take(sent: Sent, case: Case, future: Future[Any] | Exception | None) -> dict[str, Any]:
    """One run's answer, written to its folder; a failed run where there is none."""
    context = sent.context
    if future is None:
        run = run_case(context, case, None, threading.Event())
        assert run is not None, "nothing cuts it short"
        return run
    run, files = blank_run(context, case), {}
    folder = folder_of(context.plan, case)
    try:
        if isinstance(future, Exception):
            raise future
        answer = future.result()
        run, files = answer.run | {"directory": str(folder)}, answer.files
        sent.seconds.append(answer.seconds)
    except Exception as error:
        run["error"], run["error_kind"] = _why(error), "worker"
    try:
        program, _ = context.programs.get(case.workload, case.seed)
        if run["program_hash"] not in ("", program.program_hash):
            run, files = blank_run(context, case), {}
            run |= {
                "error_kind": "worker",
                "error": "its worker did other work than is asked for here; "
                "give all machines the same schedlab",
            }
        run["program_hash"] = program.program_hash
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_files(files, folder)
        write_run(run)
    except OSError as error:
        mark_failed(run, error)
    return listed(run)


def _why(error: Exception) -> str:
    """Say why a run has no answer."""
    text = str(error) or type(error).__name__
    if isinstance(error, SchedlabError):
        return text
    if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
        return f"its worker, or another one of the executor, died: {text}"
    return f"the executor gave no answer: {type(error).__name__}: {text}"


# ---- in the worker ----------------------------------------------------------


def do_item(item: WorkItem) -> Answer:
    """Do one run in a folder of its own."""
    from .. import __version__

    if item.version != __version__:
        raise UnavailableError(
            f"a worker has schedlab {__version__}, but {item.version} is asked for; give all "
            "machines the same"
        )
    started = time.monotonic()
    host = host_of(item.plan.execution)
    with tempfile.TemporaryDirectory(prefix="schedlab-") as scratch:
        folder = Path(scratch, "source")
        context = RunContext(
            plan=replace(item.plan, out=Path(scratch, "out")),
            host=host,
            built={item.case.policy_name: _unpack(item.source, folder, item.plan.execution)},
            programs=Programs(Path(scratch, "programs")),
            environment=environment_of(host),
        )
        run = blank_run(context, item.case)
        session = host.session(timeout_seconds=item.plan.execution.timeout_seconds)
        try:
            do_case(run, context, item.case, session)
        except OSError as error:
            mark_failed(run, error)
        finally:
            session.close()
        folder = Path(run["directory"])
        files = {
            str(file.relative_to(folder)): file.read_bytes()
            for file in folder.rglob("*")
            if file.is_file() and (item.wanted is None or file.name in item.wanted)
        }
        if run["error"]:
            run["error"] = (
                run["error"]
                .replace(str(folder), item.source.root)
                .replace(str(context.plan.out), str(item.plan.out))
            )
    return Answer(run, files, time.monotonic() - started)


def _unpack(source: Source, folder: Path, execution: Execution) -> BuiltPolicy:
    """Compile a policy that has travelled."""
    write_files(source.files, folder)
    policy = load_policy(str(folder / source.main))
    if policy.content_hash != source.content_hash:
        raise UnavailableError(
            "a worker's include/scx/ differs from the one here; give all machines the same schedlab"
        )
    return build_for(execution, policy, source.values)


# ---- opening an executor ----------------------------------------------------


@contextmanager
def open_executor(given: Any, *, host: str = "sim") -> Iterator[Any]:
    """Use an executor, or open the one that an address names."""
    if not isinstance(given, str):
        _check_executor(given)
        yield given
        return
    place = given.removeprefix(_SCHEME)
    name, colon, port = place.rpartition(":")
    if not given.startswith(_SCHEME) or not (place == "local" or (name and colon and port.isdecimal())):
        raise UsageError(
            f"executor {given!r}: should read dask://HOST:PORT, the address of a Dask scheduler, "
            "or dask://local"
        )
    with _dask_client(place) as client:
        _check_workers(client, given, host)
        # Equal work items are two work items: none may stand in for the other.
        yield client.get_executor(pure=False)


def _check_executor(given: Any) -> None:
    """Refuse what would hang: a fork copies Polars's locks, but not its threads."""
    if given is None:
        return
    if not callable(getattr(given, "submit", None)):
        raise UsageError(
            f"executor: has no submit (got {given!r}); give an Executor, an address "
            "such as dask://HOST:PORT, or None"
        )
    context = getattr(given, "_mp_context", None)
    if context is not None and context.get_start_method() == "fork":
        raise UsageError(
            "executor: its processes are forked, and would wait for ever for threads that were "
            "not; make it with mp_context=multiprocessing.get_context('spawn')"
        )


@contextmanager
def _dask_client(place: str) -> Iterator[Any]:
    """A client of the scheduler at an address, or of one started here."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        how = "./lab setup" if paths.in_checkout() else "pip install distributed"
        raise UnavailableError(f"executor {_SCHEME}{place}: Dask is not installed: {how}") from error
    if place == "local":
        with _without_ctrl_c():
            cluster: Any = LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=os.cpu_count() or 1, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
            )
        with cluster, Client(cluster, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            yield client
        return
    try:
        connected: Any = Client(f"tcp://{place}", timeout=_CONNECT_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"executor {_SCHEME}{place}: no Dask scheduler answers there ({error}); start one with "
            f"`dask scheduler`, and workers with `dask worker tcp://{place}`"
        ) from error
    with connected:
        yield connected


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Start processes that a terminal's Ctrl-C does not reach: it is for us, who end them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _check_workers(client: Any, given: str, host: str) -> None:
    """Refuse a cluster whose workers could not do the runs."""
    from .. import __version__

    try:
        client.wait_for_workers(1, timeout=_WORKERS_SECONDS)
    except TimeoutError as error:
        raise UnavailableError(
            f"executor {given}: the scheduler has no workers after {_WORKERS_SECONDS} s; start one "
            f"on each machine with `dask worker {given.replace(_SCHEME, 'tcp://')}`"
        ) from error
    problems = []
    for worker, answer in client.run(describe_worker, host, on_error="return").items():
        if isinstance(answer, BaseException):
            problems.append(
                f"{worker}: cannot use schedlab ({type(answer).__name__}: {answer}); "
                f"install schedlab {__version__} there"
            )
        elif answer["schedlab"] != __version__:
            problems.append(
                f"{worker}: has schedlab {answer['schedlab']}, here is {__version__}; "
                "give all machines the same"
            )
        elif answer["problem"]:
            problems.append(f"{worker}: {answer['problem']}")
    if problems:
        raise UnavailableError("\n".join(f"executor {given}: {text}" for text in problems))


def describe_worker(host: str) -> dict[str, Any]:
    """Say whether this process could do runs; asked of each worker."""
    from .. import __version__

    problem = unavailable_reason(host)
    # What came compiled needs none, and whatever else is sent says so by itself.
    if problem is None and host != "wasm" and not paths.compiled_folder().is_dir():
        try:
            find_compiler()
        except UnavailableError as error:
            problem = str(error)
    return {"schedlab": __version__, "problem": problem}
