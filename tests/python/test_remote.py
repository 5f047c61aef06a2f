# SPDX-License-Identifier: MIT
"""Runs done by Dask: the same as here, whatever becomes of a worker, with no shared folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from polars.testing import assert_frame_equal

import schedlab
from schedlab.errors import UnavailableError, UsageError
from schedlab.hosts.kernel.host import KernelHost
from schedlab.model import Execution
from schedlab.runs import remote
from schedlab.runs.case import Case
from schedlab.runs.run import make_plan, prepare, run_plan

pytestmark = [pytest.mark.usefixtures("build"), pytest.mark.full]

#: A policy that begins with a header of its own, which stands in another folder.
POLICY = """\
#include "../shared/turn.h"

void BPF_STRUCT_OPS(x_enqueue, struct task_struct *p, u64 flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, TURN_NS, flags);
}

SCX_OPS_DEFINE(x_ops, .enqueue = (void *)x_enqueue, .name = "x");
"""
HEADER = '#include <scx/common.bpf.h>\nchar _license[] SEC("license") = "GPL";\n#define TURN_NS 3000000\n'
#: What two runs of the same may differ in.
PLACES = ("directory", "environment", "command_line")


def dask():
    return pytest.importorskip("distributed", reason="./lab setup installs it")


@pytest.fixture(scope="module")
def cluster(build):
    """A scheduler and two worker processes on this machine."""
    with dask().LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def address(cluster) -> str:
    return cluster.scheduler_address.replace("tcp://", "dask://")


@pytest.fixture
def own(tmp_path) -> Path:
    """A policy in two files, in a folder that no worker looks into."""
    for name, text in (("mine/own.bpf.c", POLICY), ("shared/turn.h", HEADER)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    return tmp_path / "mine" / "own.bpf.c"


def contents(folder: Path) -> dict:
    """All files below a folder; JSON without what tells its place."""
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            text = file.read_bytes()
            found[str(file.relative_to(folder))] = text.replace(str(folder).encode(), b"DIR")
    return found


def test_the_same_folder_as_a_run_here(address, own, tmp_path):
    plan = {
        "workloads": ["mixed", "textbook/rr"],
        "policies": ["rr", "fifo", str(own)],
        "n_seeds": 2,
        "settings": ["rr.slice_ns=1ms,20ms"],
        "costs": ["switch_ns=2us"],
        "io": ["depth=2"],
    }
    here = run_plan(make_plan(out=tmp_path / "here", **plan))
    seen = []
    with remote.open_executor(address) as executor:
        there = run_plan(
            make_plan(out=tmp_path / "there", **plan),
            executor=executor,
            on_start=seen.append,
            on_result=seen.append,
        )
    assert here.is_good and there.is_good
    assert len(here.runs) == 16 and seen[0] == 16 and len(seen) == 17
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.full
def test_a_worker_that_is_killed_half_way_loses_nothing(address, tmp_path):
    plan = {"workloads": ["report-5/mixed"], "policies": ["rr", "mlfq"], "n_seeds": 20}
    here = run_plan(make_plan(out=tmp_path / "here", **plan))
    killed = []

    with remote.open_executor(address) as executor:
        prepared = prepare(make_plan(out=tmp_path / "there", **plan))
        sent = remote.send(prepared.context, prepared.cases, executor)

        def kill_after_five(run):
            if len(killed) < 5:
                killed.append(None)
            elif len(killed) == 5:
                (pid,) = {executor._client.run(os.getpid, workers=[w])[w] for w in workers[:1]}
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

        workers = list(executor._client.scheduler_info()["workers"])
        runs, is_interrupted = remote.collect(sent, kill_after_five)
    assert len(killed) == 6 and not is_interrupted
    assert [(run["policy"], run["seed"]) for run in runs] == [
        (policy, seed) for policy in ("rr", "mlfq") for seed in range(1, 21)
    ]
    for one, other in zip(runs, here.runs, strict=True):
        assert {k: v for k, v in one.items() if k not in PLACES} == {
            k: v for k, v in other.items() if k not in PLACES
        }
        assert one["status"] == "ok" and os.path.isfile(os.path.join(one["directory"], "run.json"))


def test_a_sweep_gives_the_same_tables(address, own, tmp_path):
    grid = {"seeds": [3, 9], "cpus": [1, 2], "set": {"rr.slice_ns": ["1ms", "0s"]}}
    here = schedlab.sweep("mixed", ["rr", own], out=tmp_path / "here", **grid)
    there = schedlab.sweep("mixed", ["rr", own], out=tmp_path / "there", executor=address, **grid)
    assert here.cells["status"].to_list() == ["ok", "ok", "failed", "failed"] * 2
    for name in ("cells", "runs", "tasks", "comparisons", "warnings"):
        a, b = (getattr(each, name).drop(("seconds", "directory"), strict=False) for each in (here, there))
        assert_frame_equal(a, b)
    assert there.cells["seconds"].drop_nulls().min() > 0
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.full
def test_the_command_takes_the_address(address, own, root, tmp_path):
    arguments = ["run", "textbook/rr", "-p", "rr,../mine/own.bpf.c", "--seeds", "2", "--json"]
    (tmp_path / "elsewhere").mkdir()
    environment = os.environ | {"PYTHONPATH": str(root / "python")}
    outputs = []
    for more in ([], ["--executor", address]):
        done = subprocess.run(
            [sys.executable, "-m", "schedlab", *arguments, *more],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path / "elsewhere",
            timeout=120,
            check=True,
        )
        assert done.stderr == ""
        outputs.append(json.loads(done.stdout))
    for output in outputs:
        for run in output["runs"]:
            for place in PLACES:
                run.pop(place)
    assert outputs[0] == outputs[1]


# ---- what a worker may lack -------------------------------------------------


def item_of(own, tmp_path, **changes) -> remote.WorkItem:
    prepared = prepare(make_plan(["textbook/rr"], [str(own)], tmp_path / "out"))
    source = remote._pack(prepared.context.built["own"])
    fields = {
        "version": schedlab.__version__,
        "plan": prepared.context.plan,
        "source": source,
        "case": prepared.cases[0],
        "wanted": None,
    }
    return remote.WorkItem(**fields | changes)


def test_a_work_item_is_refused_by_another_schedlab(own, tmp_path):
    with pytest.raises(UnavailableError, match="schedlab .*, but 0.0.7 is asked for"):
        remote.do_item(item_of(own, tmp_path, version="0.0.7"))
    item = item_of(own, tmp_path)
    changed = remote.Source(**vars(item.source) | {"content_hash": "0" * 64})
    with pytest.raises(UnavailableError, match="include/scx/ differs"):
        remote.do_item(item_of(own, tmp_path, source=changed))


def test_a_work_item_brings_its_own_files_and_no_others(own, tmp_path):
    source = item_of(own, tmp_path).source
    assert set(source.files) == {"mine/own.bpf.c", "shared/turn.h"}
    assert (source.main, source.root) == ("mine/own.bpf.c", str(tmp_path))
    broken = POLICY.replace("TURN_NS", "TURN_MS").encode()
    item = item_of(own, tmp_path)
    item.source.files["mine/own.bpf.c"] = broken
    with pytest.raises(UnavailableError, match="differs"):
        remote.do_item(item)


def test_only_what_is_wanted_comes_back(own, tmp_path):
    answer = remote.do_item(item_of(own, tmp_path, wanted=("tasks.parquet",)))
    assert set(answer.files) == {"tasks.parquet"}
    assert answer.run["status"] == "ok"


def test_other_work_than_asked_for_is_no_result(own, tmp_path):
    class Other:
        def submit(self, function, item):
            from concurrent.futures import Future

            answer = function(item)
            future = Future()
            future.set_result(remote.Answer(answer.run | {"program_hash": "0" * 64}, answer.files, 0.1))
            return future

    result = run_plan(make_plan(["textbook/rr"], [str(own)], tmp_path / "out"), executor=Other())
    (run,) = result.runs
    assert (run["status"], run["error_kind"], run["metrics"]) == ("failed", "worker", {})
    assert run["error"].startswith("its worker did other work")
    assert [file.name for file in Path(run["directory"]).iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ("dask", UsageError, "should read dask://HOST:PORT"),
        ("dask://here", UsageError, "should read dask://HOST:PORT"),
        ("dask://:80", UsageError, "should read dask://HOST:PORT"),
        (5, UsageError, "has no submit"),
    ],
)
def test_what_is_no_executor_is_refused(given, error, match):
    with pytest.raises(error, match=match), remote.open_executor(given):
        pass


def test_where_nobody_answers_the_remedy_is_said(monkeypatch):
    dask()
    monkeypatch.setattr(remote, "_CONNECT_SECONDS", 1)
    with (
        pytest.raises(UnavailableError, match="start one with `dask scheduler`"),
        remote.open_executor("dask://127.0.0.1:9"),
    ):
        pass


def test_without_dask_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(UnavailableError, match="Dask is not installed: ./lab setup"),
        remote.open_executor("dask://local"),
    ):
        pass


def test_workers_that_cannot_do_runs_are_named(monkeypatch):
    class Client:
        answers: ClassVar[dict] = {}

        def wait_for_workers(self, nr, timeout):
            if not self.answers:
                raise TimeoutError

        def run(self, function, host, on_error):
            assert function is remote.describe_worker and function(host)["problem"] is None
            return self.answers

    client = Client()
    with pytest.raises(UnavailableError, match="has no workers after .* `dask worker tcp://h:1`"):
        remote._check_workers(client, "dask://h:1", "sim")
    version = schedlab.__version__
    client.answers = {
        "tcp://a:1": {"schedlab": version, "problem": None},
        "tcp://b:1": {"schedlab": "0.0.7", "problem": None},
        "tcp://c:1": {"schedlab": version, "problem": "no C compiler"},
        "tcp://d:1": ModuleNotFoundError("No module named 'schedlab'"),
    }
    with pytest.raises(UnavailableError) as caught:
        remote._check_workers(client, "dask://h:1", "sim")
    text = str(caught.value)
    assert len(text.splitlines()) == 3 and "tcp://a:1" not in text
    for words in ("b:1: has schedlab 0.0.7", "c:1: no C compiler", "d:1: cannot use schedlab"):
        assert words in text


class Opened(Exception):
    """Carries how a worker opened its host."""


@dataclass(frozen=True)
class StandIn(KernelHost):
    """The teaching kernel's host up to the moment at which it would boot."""

    def session(self, **_):
        raise Opened(self.is_parallel)


@pytest.mark.parametrize("is_parallel", [False, True])
def test_a_worker_opens_the_host_as_the_plan_says(is_parallel, tmp_path, monkeypatch):
    prepared = prepare(make_plan(["textbook/rr"], ["rr"], tmp_path / "out"))
    case = prepared.cases[0]
    plan = replace(prepared.context.plan, execution=Execution(host="kernel", is_parallel=is_parallel))
    source = remote._pack(prepared.context.built[case.policy_name])
    monkeypatch.setattr("schedlab.runs.plan.open_host", lambda name: StandIn())
    monkeypatch.setattr(remote, "environment_of", lambda host: {})
    with pytest.raises(Opened) as opened:
        remote.do_item(remote.WorkItem(schedlab.__version__, plan, case, source, None))
    assert opened.value.args == (is_parallel,)


def test_a_kernel_image_does_not_travel(tmp_path):
    plan = make_plan(["textbook/rr"], ["rr"], tmp_path / "out", host="guest", kernel=tmp_path / "bzImage")
    with pytest.raises(UsageError, match="--kernel .*bzImage stays on this machine"):
        run_plan(plan, executor=object())
    assert not (tmp_path / "out").exists()


def test_a_case_can_travel():
    import pickle

    from schedlab.workload.find import load_workload

    case = Case(0, load_workload("report-3/matrix"), "rr", 1, 4, 10**7)
    assert pickle.loads(pickle.dumps(case)) == case
