# SPDX-License-Identifier: MIT
"""The notebooks in docs/ run, and what their prose says is what their tables show.

They are kept without outputs, which would go stale: each reader makes their own,
and here it is tested that these are the ones that the text is about.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import schedlab

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

#: Runs a notebook in a kernel of its own, which listens to no network.
EXECUTE = """
import sys, nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=sys.argv[2] + "/kernel")
NotebookClient(notebook, km=manager, timeout=120).execute(cwd=sys.argv[2])
nbformat.write(notebook, sys.argv[3])
"""


def test_there_is_one():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path):
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
    words = "".join(word for cell in notebook["cells"] for word in cell["source"])
    for target in re.findall(r"\]\(([^)#:]+)\)", words):
        assert (path.parent / target).exists(), target


@pytest.fixture(scope="module")
def shown(build, tmp_path_factory) -> dict[str, dict]:
    """What each code cell of the first comparison shows, by a word of its source."""
    pytest.importorskip("nbclient", reason="./lab setup installs it")
    folder = tmp_path_factory.mktemp("notebook")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "IPYTHONDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, FOLDER / "first-comparison.ipynb", folder, folder / "done.ipynb"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = {}
    for cell in json.loads((folder / "done.ipynb").read_text())["cells"]:
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error" and output.get("name") != "stderr", output
            found["".join(cell["source"])] = output.get("data", {"text/plain": output.get("text")})
    return found


def of(shown: dict[str, dict], word: str) -> dict[str, str]:
    """The output of the one cell that has a word in its source."""
    (cell,) = [cell for cell in shown if word in cell]
    return {kind: "".join(text) for kind, text in shown[cell].items()}


@pytest.mark.full
def test_every_cell_but_the_first_shows_something(shown):
    (path,) = NOTEBOOKS
    cells = json.loads(path.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert list(shown) == sources[1:]
    assert of(shown, "charts.samples")["image/svg+xml"].count("<path") > 60
    assert of(shown, "assert result.is_good")["text/plain"] == "<Result: 60 runs, good>"


@pytest.mark.full
def test_the_numbers_are_those_of_the_runs(shown):
    result = schedlab.run("mixed", ["rr", "mlfq", "cfs"], seeds=20, baseline="mlfq")
    means = result.runs.group_by("policy", maintain_order=True).agg(pl.col("wakeup_ns_p99").mean() / 1e6)
    table = of(shown, "result.runs.group_by")["text/plain"]
    for policy, mean in means.iter_rows():
        assert re.search(rf"{policy} +┆ {mean:.1f} ", table), (policy, mean)
    pair = result.comparisons.filter(pl.col("metric") == "wakeup_ns_p99", policy_b="rr").row(0, named=True)
    low, high = pair["low"] / 1e6, pair["high"] / 1e6
    assert f"by {low:.0f} to {high:.0f} ms" in of(shown, "best = compared")["text/plain"]


def test_the_prose_is_true():
    """What the text says after each table; it must be written anew where this fails."""
    result = schedlab.run("mixed", ["rr", "mlfq", "cfs"], seeds=20, baseline="mlfq")
    p99 = dict(result.runs.group_by("policy").agg(pl.col("wakeup_ns_p99").mean()).iter_rows())
    assert p99["mlfq"] < p99["cfs"] < p99["rr"]
    compared = result.comparisons.filter(pl.col("metric") == "wakeup_ns_p99")
    assert compared["policy_b"].to_list() == ["rr", "cfs"]
    assert compared["better"].to_list() == ["a", "a"]
    classes = result.tasks.with_columns(pl.col("name").str.extract(r"^(\w+)"))
    wakeups = {
        (policy, name): mean
        for policy, name, mean in classes.group_by("policy", "name")
        .agg(pl.col("wakeup_ns_mean").mean())
        .iter_rows()
    }
    assert wakeups["cfs", "editor"] < wakeups["mlfq", "editor"] < wakeups["rr", "editor"]
    assert wakeups["mlfq", "clerk"] < wakeups["cfs", "clerk"]
    longest = result.tasks.sort("wait_ns_max", descending=True).head(3)
    assert set(longest["policy"]) == {"mlfq"} and longest["name"].str.starts_with("hog").all()
    assert not result.warnings["metrics"].str.contains("wakeup_ns_p99").any()


def test_short_turns_help_and_cost():
    runs = schedlab.run(
        "mixed", "rr", seeds=3, tick="1ms", costs={"switch_ns": "20us"}, set={"rr.slice_ns": "1ms,3ms,10ms"}
    ).runs
    means = runs.group_by("policy", maintain_order=True).agg(pl.col("wakeup_ns_p99", "overhead_ns").mean())
    assert means["policy"].to_list() == ["rr:slice_ns=1ms", "rr:slice_ns=3ms", "rr:slice_ns=10ms"]
    assert means["wakeup_ns_p99"].is_sorted() and means["overhead_ns"].is_sorted(descending=True)


# ---- the tables elsewhere ---------------------------------------------------


@pytest.mark.full
def test_pandas_takes_every_table():
    pd = pytest.importorskip("pandas", reason="./lab setup installs it")
    result = schedlab.run("mixed", ["rr", "fifo"], seeds=2)
    for name in ("runs", "tasks", "comparisons", "warnings"):
        table = getattr(result, name)
        taken = table.to_pandas()
        assert list(taken.columns) == table.columns and len(taken) == table.height > 0
        assert pl.from_pandas(taken)["workload"].to_list() == table["workload"].to_list()
    assert isinstance(result.runs.to_pandas().groupby("policy")["switches"].mean(), pd.Series)


def test_duckdb_takes_every_table():
    duckdb = pytest.importorskip("duckdb", reason="./lab setup installs it")
    result = schedlab.run("mixed", ["rr", "fifo"], seeds=2)
    for name in ("runs", "tasks", "comparisons", "warnings"):
        table = getattr(result, name)
        with duckdb.connect() as connection:
            connection.register("taken", table)
            assert connection.execute("SELECT count(*) FROM taken").fetchall() == [(table.height,)]
            connection.execute("SELECT * FROM taken")
            assert [column[0] for column in connection.description] == table.columns
