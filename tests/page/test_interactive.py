# SPDX-License-Identifier: MIT
"""A report with its simulator in it: read from a file, with the network off."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from conftest import missing
from schedlab.errors import UsageError
from schedlab.report import interactive
from schedlab.report.write import write_report
from schedlab.runs.run import make_plan, run_plan

RESULTS = """async () => Promise.all(schedlab.playground.results.map(async r =>
  ({policy: r.policy, hash: await r.hash, error: r.answer.error, switches: r.metrics.switches})))"""
SETTLED = """async () => {
  while (!schedlab.playground?.settled) await new Promise(done => setTimeout(done, 10));
  await schedlab.playground.settled;
}"""


@pytest.fixture(scope="module")
def runs(simulator, tmp_path_factory):
    """Runs with knobs, costs and a topology; their folder and what is known of them."""
    if find_spec("wasmtime") is None:
        missing("the Python package wasmtime", "pip install '.[anywhere]'")
    out = tmp_path_factory.mktemp("runs") / "out"
    settings, costs = ["rr.slice_ns=5ms"], ["switch_ns=20us"]
    plan = make_plan(
        ["mixed"], ["rr", "mlfq"], out, n_seeds=2, cpus=2, settings=settings, costs=costs, topology="smt=2"
    )
    return out, run_plan(plan).runs


@pytest.fixture
def opened(browser, runs, tmp_path):
    """The frame of the report, once it has run; afterwards there was no complaint."""
    page_file = write_report(runs[0], tmp_path / "report.html", is_interactive=True).path
    complaints = []
    context = browser.new_context()
    context.set_offline(True)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    own = (page_file.as_uri(), "data:", "blob:")
    page.on("request", lambda r: None if r.url.startswith(own) else complaints.append(r.url))
    page.goto(page_file.as_uri())
    assert len(page.frames) == 2 and page.frames[1].url in ("", "about:blank"), "it is filled when it is seen"
    page.locator("#turn iframe").scroll_into_view_if_needed()
    page.frame_locator("#turn iframe").locator("#numbers td").first.wait_for()
    page.frames[1].evaluate(SETTLED)
    yield page.frames[1]
    context.close()
    assert complaints == []


def test_both_sides_are_the_runs_until_a_knob_is_turned(opened, runs):
    hashes = {(run["policy"].partition(":")[0], run["seed"]): run["record_hash"] for run in runs[1]}
    first = opened.evaluate(RESULTS)
    assert [each["hash"] for each in first] == [hashes["rr", 1], hashes["mlfq", 1]]
    assert opened.get_by_label("slice_ns, exact").input_value() == "5ms"
    opened.locator("select[name='seed']").select_option("2")
    opened.evaluate(SETTLED)
    second = opened.evaluate(RESULTS)
    assert [each["hash"] for each in second] == [hashes["rr", 2], hashes["mlfq", 2]]
    opened.get_by_label("slice_ns, exact").fill("1ms")
    opened.get_by_label("slice_ns, exact").press("Tab")
    opened.evaluate(SETTLED)
    turned, same = opened.evaluate(RESULTS)
    assert same == second[1] and turned["hash"] != second[0]["hash"]
    assert turned["switches"] > second[0]["switches"]


def test_all_seeds_are_run_again_beside_what_was_reported(opened, runs):
    lines = opened.locator("#reported .same")
    lines.nth(1).wait_for()
    assert lines.all_inner_texts() == [
        "A: rr:slice_ns=5ms: as it was run. 2 of 2 record hashes are those of the folder.",
        "B: mlfq: as it was run. 2 of 2 record hashes are those of the folder.",
    ]
    opened.get_by_label("slice_ns, exact").fill("2ms")
    opened.get_by_label("slice_ns, exact").press("Tab")
    row = opened.locator("#reported tr[data-metric='switches']")
    row.wait_for()
    was, now, change = row.locator("td").all_inner_texts()
    reported = [run["metrics"]["switches"] for run in runs[1] if run["policy"].startswith("rr")]
    assert float(was.replace(",", "")) == pytest.approx(sum(reported) / 2, rel=0.01)
    assert float(now.replace(",", "")) > float(was.replace(",", ""))
    assert change.startswith("+") and change.endswith("higher in 2 of 2")
    assert (
        "rr:slice_ns=2ms, beside rr:slice_ns=5ms of the report"
        in opened.locator("#reported caption").inner_text()
    )
    assert lines.all_inner_texts() == [
        "B: mlfq: as it was run. 2 of 2 record hashes are those of the folder."
    ]
    hashes = opened.locator("#commands .hash")
    assert "the folder" not in hashes.first.inner_text()
    assert hashes.last.inner_text().endswith(", the same as in the folder of these runs")
    # What the command needs to give these records.
    command = opened.locator("#commands code").first.inner_text()
    assert command.endswith(" --cost switch_ns=20000 --topology smt=2 --tick 10ms")


def test_a_report_of_other_records_is_told_so_by_its_page(opened):
    opened.locator("#reported .same").first.wait_for()
    changed = opened.evaluate(
        """async () => {
      const [side] = schedlab.playground.sides, { job } = side.result, { reported } = schedlab.playground;
      reported.of(job).runs[2].hash = "0";
      reported.run();
      await reported.done;
      return [reported.element.querySelector(".same").textContent, reported.compare({ ...job, seed: 2 }, "1")];
    }"""
    )
    assert "1 of 2 record hashes are those of the folder" in changed[0]
    assert changed[1] == ", NOT that of the folder of these runs"


def test_a_page_that_nobody_asked_it_of_has_none_of_it(runs, tmp_path):
    text = write_report(runs[0], tmp_path / "report.html").path.read_text()
    assert "frame-src" not in text and "wasm-unsafe-eval" not in text and "iframe" not in text


@pytest.mark.parametrize(("limit", "value"), [("SECONDS_MAX", 1e-6), ("RECORDS_BYTES_MAX", 1000)])
def test_a_run_too_long_for_a_browser_is_refused(runs, tmp_path, monkeypatch, limit, value):
    monkeypatch.setattr(interactive, limit, value)
    with pytest.raises(UsageError, match="mixed, rr, seed 1: too long for a browser, .* run a shorter one"):
        write_report(runs[0], tmp_path / "report.html", is_interactive=True)
    assert not (tmp_path / "report.html").exists()


def changed(runs, tmp_path, **keys):
    """The folder's summary with other runs in it, in a folder of its own."""
    folder = tmp_path / "changed"
    folder.mkdir()
    (folder / "runs.json").write_text(
        json.dumps({"runs": [run | keys for run in runs[1]], "comparisons": []})
    )
    return folder


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"host": "uthreads"}, "mixed ran on uthreads; a page runs the simulator only"),
        ({"record_hash": "0" * 64}, "mixed, rr, seed 1: this version of schedlab gives other records"),
        ({"program_hash": "0" * 64}, "seed-1-000000000000.slprog is not there any more"),
        ({"directory": "/nowhere"}, "the source of rr is not in the folder"),
    ],
)
def test_what_cannot_be_done_again_is_told(runs, tmp_path, keys, message):
    with pytest.raises(UsageError, match=message):
        write_report(changed(runs, tmp_path, **keys), tmp_path / "report.html", is_interactive=True)
    assert not (tmp_path / "report.html").exists()
