# SPDX-License-Identifier: MIT
"""schedlab from a program: tables of fixed shape, sweeps in order, failures listed."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import re
import shutil
import subprocess
import sys
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import schedlab
from schedlab import api
from schedlab.errors import NotFoundError, UsageError
from schedlab.runs import workers

pytestmark = pytest.mark.usefixtures("build")

BROKEN = '#include <scx/common.bpf.h>\nSCX_OPS_DEFINE(x_ops, .enqueue = nothing, .name = "x");\n'
#: Columns that depend on the clock or the place.
VOLATILE = ("seconds", "directory")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"seeds": "3"}, "seeds must be a number of seeds"),
        ({"seeds": [1, 1]}, "given twice"),
        ({"seeds": [1, 3]}, "must follow on one another"),
        ({"seeds": [-1]}, "whole numbers from 0"),
        ({"cpus": 0}, "cpus must be 1"),
        ({"set": {"rr.slice": 1}}, "did you mean 'slice_ns'"),
        ({"workloads": []}, "workloads is empty"),
        ({"policies": 5}, "policies must be a name"),
        ({"tick": "5"}, "tick: '5' has no unit"),
    ],
)
def test_a_wrong_argument_is_refused(arguments, match):
    with pytest.raises(UsageError, match=match):
        schedlab.run(**{"workloads": "textbook/rr", "policies": "rr"} | arguments)


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, schedlab; print(sorted({'numpy', 'polars', 'scipy', 'typer'} & {*sys.modules}))"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "[]", done.stderr


def test_what_is_offered_stays_a_function_whatever_is_imported():
    import schedlab.runs.run

    assert schedlab.run is api.run
    assert schedlab.runs.run.run_plan is not schedlab.run
    assert pickle.loads(pickle.dumps(schedlab.run)) is schedlab.run
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        schedlab.runn  # noqa: B018


def test_tables_hold_what_the_textbook_says():
    result = schedlab.run("textbook/rr", ["rr", "fifo"], seeds=range(0, 1), set={"rr.slice_ns": "2ms"})
    assert result.is_good and result.errors == []
    assert result.runs["rr.slice_ns"].to_list() == [2_000_000, None]
    assert result.runs["makespan_ns"].to_list() == [13e6, 13e6]
    assert result.runs["directory"].to_list() == [None, None]
    fifo = result.tasks.filter(pl.col("policy") == "fifo")
    assert fifo["run_ns"].sum() == 13_000_000 and fifo.height == 4
    pair = result.comparisons.row(by_predicate=pl.col("metric") == "switches", named=True)
    runs = result.runs["switches"].to_list()
    assert pair["difference"] == runs[1] - runs[0] and pair["n"] == 1


class ArrowOnly:
    """What another library sees of a table: the Arrow stream and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def test_tables_pass_through_an_arrow_stream():
    result = schedlab.run("mixed", ["rr", "fifo"], seeds=2)
    for table in (result.runs, result.tasks, result.comparisons, result.warnings):
        assert table.height > 0
        assert_frame_equal(pl.DataFrame(ArrowOnly(table)), table)
        # pandas takes no nested columns of texts.
        assert not any(kind.is_nested() for kind in table.dtypes)


def test_a_failed_run_is_a_row_and_columns_stay(tmp_path):
    broken = tmp_path / "x.bpf.c"
    broken.write_text(BROKEN)
    bad = schedlab.run("textbook/rr", broken)
    good = schedlab.run("textbook/rr", "fifo")
    assert not bad.is_good and "does not compile" in bad.errors[0]
    assert bad.runs["status"].to_list() == ["failed"]
    for table in ("runs", "tasks", "comparisons", "warnings"):
        assert getattr(bad, table).schema == getattr(good, table).schema
    assert "1 failed" in repr(bad) and "good" in repr(good)


def test_out_keeps_the_runs(tmp_path):
    result = schedlab.run("textbook/rr", "rr", out=tmp_path / "kept")
    assert result.directory == tmp_path / "kept"
    (directory,) = result.runs["directory"]
    assert os.path.isfile(os.path.join(directory, "run.json"))
    on_disk = pl.read_parquet(os.path.join(directory, "tasks.parquet"))
    assert_frame_equal(result.tasks.select(on_disk.columns), on_disk)


# ---- sweeps -----------------------------------------------------------------


GRID = {"seeds": [7, 3], "cpus": [1, 2], "set": {"rr.slice_ns": ["1ms", "20ms", "0s"]}}


@pytest.fixture(scope="module")
def swept():
    """A sweep of which a third fails, done here, one cell after the other."""
    return schedlab.sweep("mixed", ["rr", "fifo"], **GRID)


def test_cells_are_in_order_and_failures_are_listed(swept):
    assert swept.cells["cell"].to_list() == list(range(12))
    assert swept.cells["seed"].to_list() == [7, 3] * 6
    assert swept.cells["cpus"].to_list() == [1] * 6 + [2] * 6
    assert swept.failures["rr.slice_ns"].to_list() == ["0s"] * 4
    assert set(swept.failures["error_kind"]) == {"UsageError"}
    assert len(swept.errors) == 4 and "out of range" in swept.errors[0]
    assert swept.runs.height == 16 and swept.runs["cell"].is_sorted()


def test_policies_are_compared_within_a_combination(swept):
    alone = schedlab.run("mixed", ["rr", "fifo"], seeds=[7], cpus=2, set={"rr.slice_ns": "20ms"})
    row = (pl.col("settings") == "rr.slice_ns=20ms") & (pl.col("cpus") == 2)
    hashes = swept.runs.filter(row & (pl.col("seed") == 7))["record_hash"]
    assert hashes.to_list() == alone.runs["record_hash"].to_list()
    pairs = swept.comparisons.filter(row & (pl.col("metric") == "switches"))
    runs = swept.runs.filter(row).group_by("policy").agg(pl.col("switches").mean())
    means = dict(runs.iter_rows())
    assert pairs.height == 1 and pairs["n"].item() == 2
    assert pairs["mean_a"].item() == means["rr"] and pairs["mean_b"].item() == means["fifo"]


def test_a_sweep_compares_with_the_baseline_it_is_given():
    found = schedlab.sweep("textbook/rr", ["rr", "fifo", "mlfq"], baseline="mlfq", seeds=[1])
    pairs = set(found.comparisons.select("policy_a", "policy_b").iter_rows())
    assert pairs == {("mlfq", "rr"), ("mlfq", "fifo")}


def same_tables(one, other):
    for table in ("cells", "runs", "tasks", "comparisons", "warnings"):
        a, b = (getattr(each, table).drop(VOLATILE, strict=False) for each in (one, other))
        assert_frame_equal(a, b)


class Backwards:
    """An executor of the least kind: a submit, and the last of 16 runs done first."""

    def __init__(self):
        self.waiting = []

    def submit(self, function, *arguments):
        future = Future()
        # All that crosses to a worker is pickled, there and back.
        self.waiting.append((future, pickle.dumps((function, arguments))))
        if len(self.waiting) == 16:
            for each, packed in reversed(self.waiting):
                call, values = pickle.loads(packed)
                each.set_result(pickle.loads(pickle.dumps(call(*values))))
        return future


@pytest.mark.full
def test_any_executor_gives_the_same_tables(swept):
    same_tables(schedlab.sweep("mixed", ["rr", "fifo"], executor=Backwards(), **GRID), swept)
    with ThreadPoolExecutor(2) as executor:
        same_tables(schedlab.sweep("mixed", ["rr", "fifo"], executor=executor, **GRID), swept)


@pytest.mark.full
def test_processes_give_the_same_tables(swept):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        same_tables(schedlab.sweep("mixed", ["rr", "fifo"], executor=executor, **GRID), swept)


def test_forked_processes_are_refused():
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as executor,
        pytest.raises(UsageError, match="mp_context=multiprocessing.get_context"),
    ):
        schedlab.sweep("textbook/rr", "rr", executor=executor)
    with pytest.raises(UsageError, match="has no submit"):
        schedlab.sweep("textbook/rr", "rr", executor=5)


class Dying:
    """An executor whose worker dies over the second run, and which then takes no more."""

    def __init__(self):
        self.nr = 0

    def submit(self, function, errand):
        self.nr += 1
        future = Future()
        if self.nr == 2:
            future.set_exception(BrokenProcessPool("terminated abruptly"))
        elif self.nr == 3:
            raise BrokenProcessPool("not usable any more")
        else:
            future.set_result(function(errand))
        return future


def test_a_dead_worker_costs_its_runs_only():
    result = schedlab.sweep("textbook/rr", "rr", seeds=[0, 1, 2], executor=Dying())
    assert result.cells["status"].to_list() == ["ok", "failed", "failed"]
    assert all("died" in text for text in result.failures["error"])
    assert result.runs["status"].to_list() == ["ok", "failed", "failed"]
    assert set(result.failures["error_kind"]) == {"worker"} and not result.is_good


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"policies": "rrr"}, NotFoundError, "did you mean 'rr'"),
        ({"workloads": "mixd"}, NotFoundError, "did you mean 'mixed'"),
        ({"set": {"rr.slice": ["1ms"]}}, UsageError, "did you mean 'rr.slice_ns'"),
        ({"set": {"rr.slice_ns": []}}, UsageError, "has no values"),
        ({"cpus": []}, UsageError, "cpus is empty"),
    ],
)
def test_what_no_cell_could_run_is_refused_at_once(arguments, error, match):
    with pytest.raises(error, match=match):
        schedlab.sweep(**{"workloads": "textbook/rr", "policies": "rr"} | arguments)


def test_each_cell_keeps_its_own_folder(tmp_path):
    result = schedlab.sweep("textbook/rr", "rr", set={"rr.slice_ns": ["1ms", "2ms"]}, out=tmp_path / "s")
    folders = sorted(path.name for path in (tmp_path / "s").iterdir())
    assert folders == ["00000-rr.slice_ns=1ms", "00001-rr.slice_ns=2ms"]
    assert all(map(os.path.isdir, result.runs["directory"]))


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(2)])
def test_seeds_of_one_combination_share_a_folder_and_its_list(tmp_path, executor):
    swept = schedlab.sweep(
        "textbook/rr",
        ["rr", "fifo"],
        set={"rr.slice_ns": ["1ms", "0s", "2ms"]},
        seeds=3,
        out=tmp_path / "s",
        executor=executor,
    )
    assert swept.failures.height == 3
    names = ["00000-rr.slice_ns=1ms", "00002-rr.slice_ns=2ms"]
    assert sorted(path.name for path in (tmp_path / "s").glob("*") if (path / "runs.json").exists()) == names
    for name in names:
        listed = json.loads((tmp_path / "s" / name / "runs.json").read_text())
        assert [(run["policy"], run["seed"]) for run in listed["runs"]] == [
            (policy, seed) for policy in ("rr", "fifo") for seed in (1, 2, 3)
        ]
        assert [comparison["seeds"] for comparison in listed["comparisons"]] == [[1, 2, 3]]
        assert all(Path(run["directory"]).is_relative_to(tmp_path / "s" / name) for run in listed["runs"])


def test_ctrl_c_is_not_a_failed_cell(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(workers, "run_case", interrupted)
    with pytest.raises(KeyboardInterrupt):
        schedlab.sweep("textbook/rr", "rr")


# ---- what the README shows --------------------------------------------------


@pytest.mark.full
def test_the_lines_of_the_readme_work(tmp_path, monkeypatch, root):
    (block,) = re.findall(r"^```python\n(.*?)^```$", (root / "README.md").read_text(), re.M | re.S)
    shutil.copy(root / "policies" / "rr.bpf.c", tmp_path / "mine.bpf.c")
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        names = {"pool": pool}
        exec(block, names)
    assert names["result"].is_good and names["result"].runs.height == 20
    assert names["result"].comparisons["n"].unique().to_list() == [10]
