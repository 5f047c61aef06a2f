# SPDX-License-Identifier: MIT
"""The playground as its reader sees it: from a folder, with the network off."""

from __future__ import annotations

import json
import threading
import urllib.request
from importlib.util import find_spec

import numpy as np
import pytest

from conftest import missing
from schedlab.cli.playground import folder_server
from schedlab.errors import UsageError
from schedlab.metrics.dictionary import HEADLINES
from schedlab.metrics.timeline import Timeline
from schedlab.plots.gantt import slices_of
from schedlab.program.compiler import compile_workload
from schedlab.records.file import read_records
from schedlab.report.playground import write_playground
from schedlab.runs.run import make_plan, run_plan
from schedlab.workload.find import load_workload

WORKLOADS = ("mixed", "classics/messages", "report-3/shares", "report-5/tickets", "textbook/srtf")
POLICIES = ("rr", "mlfq", "cfs", "lottery", "fifo")
#: An hour of slices of a microsecond: nobody waits for its end.
ENDLESS = """
[workload]
title = "<b>Endless</b>"
question = "Does it stop?"
[[task]]
name = "hog"
count = 2
phases = [{run = "3600s"}]
"""
CRASH = """// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* crash - follows a pointer that is none. */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

void BPF_STRUCT_OPS(crash_enqueue, struct task_struct *p, u64 enq_flags)
{
	*(volatile u64 *)0xfffffff0UL = p->pid;
}

SCX_OPS_DEFINE(crash_ops, .enqueue = (void *)crash_enqueue, .name = "crash");
"""
ANSWER_MS_MAX = 100
CHOOSE = """address => {
  const before = schedlab.playground.settled;
  location.hash = address;
  return new Promise(done => setTimeout(done)).then(() => schedlab.playground.settled);
}"""
RESULTS = """async () => Promise.all(schedlab.playground.results.map(async r =>
  ({policy: r.policy, metrics: r.metrics, hash: await r.hash, error: r.answer.error, kind: r.answer.error_kind})))"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if find_spec("wasmtime") is None:
        missing("the Python package wasmtime", "pip install '.[anywhere]'")
    folder = tmp_path_factory.mktemp("playground")
    (folder / "endless.toml").write_text(ENDLESS)
    (folder / "crash.bpf.c").write_text(CRASH)
    workloads = [*WORKLOADS, str(folder / "endless.toml")]
    policies = [*POLICIES, str(folder / "crash.bpf.c")]
    write_playground(folder, workloads=workloads, policies=policies, n_seeds=2)
    return folder


@pytest.fixture
def visit(playground, folder):
    return lambda address="", **options: playground(folder, address, **options)


def choose(page, address):
    page.evaluate(CHOOSE, address)
    return page.evaluate(RESULTS)


@pytest.mark.parametrize(
    "workload", [WORKLOADS[0], *(pytest.param(name, marks=pytest.mark.full) for name in WORKLOADS[1:])]
)
def test_numbers_slices_and_hashes_are_those_of_the_command_line(visit, simulator, tmp_path, workload):
    page = visit()
    for cpus in (1, 3):
        out = tmp_path / f"{cpus}"
        plan = make_plan([workload], POLICIES, out, n_seeds=1, first_seed=2, cpus=cpus)
        for run in run_plan(plan).runs:
            name = run["policy"]
            (found,) = choose(page, f"workload={workload}&cpus={cpus}&seed=2&a={name}&b=")
            assert (found["policy"], found["hash"]) == (name, run["record_hash"]), (workload, cpus, found)
            for metric in HEADLINES:
                expected, value = run["metrics"][metric], found["metrics"][metric]
                near = None if expected is None else pytest.approx(expected, rel=1e-9)
                assert value == near, (workload, cpus, name, metric)
            if name == "cfs":
                _compare_slices(page, next(out.rglob(f"{name}/seed-2/records.slr")))


def _compare_slices(page, records):
    shown = page.evaluate(
        """() => Object.fromEntries(Object.entries(schedlab.playground.sides[0].result.slices)
             .map(([name, column]) => [name, column.length === undefined ? column : [...column]]))"""
    )
    expected = slices_of(Timeline(read_records(records)))
    for name, column in (("pid", "pid"), ("begin", "begin_ns"), ("end", "end_ns"), ("state", "state"),
                         ("reason", "reason"), ("cpu", "cpu")):  # fmt: skip
        assert np.array_equal(shown[name], getattr(expected, column)), (records, name)
    assert shown["shown_until_ns"] == expected.shown_until_ns


def test_a_slider_answers_at_once_and_the_command_is_the_same_run(visit, simulator, tmp_path):
    page = visit("workload=mixed&seed=1&a=rr&b=mlfq")
    slider = page.locator("#b-quantum_ns")
    slider.focus()
    times = []
    for _ in range(8):
        slider.press("ArrowLeft")
        page.evaluate("schedlab.playground.settled")
        times.append(page.evaluate("schedlab.playground.milliseconds"))
    # Of a machine that has other work, the quickest: what else it does is not the page's.
    assert min(times) < ANSWER_MS_MAX, times
    _, found = page.evaluate(RESULTS)
    command = page.locator("#commands dd code").nth(1).inner_text()
    assert " --set mlfq.quantum_ns=" in command
    setting = command.partition(" --set ")[2].split()[0]
    (run,) = run_plan(make_plan(["mixed"], ["mlfq"], tmp_path, n_seeds=1, settings=[setting])).runs
    assert found["hash"] == run["record_hash"]
    assert run["record_hash"] in page.locator("#commands").inner_text()
    assert page.locator("#numbers td[data-metric='switches']").nth(1).inner_text().strip("★\u00a0 ") == (
        f"{run['metrics']['switches']:,}"
    )


def test_an_exact_value_an_enum_a_truth_and_a_wrong_value(visit, simulator, tmp_path):
    page = visit("workload=mixed&seed=1&a=rr&b=mlfq")
    page.get_by_label("boost_ns, exact").fill("100ms")
    page.get_by_label("boost_ns, exact").press("Tab")
    page.locator("#b-allotment").select_option(label="cumulative")
    page.locator("#b-rotate").check()
    page.get_by_label("quantum_ns, exact").fill("7 parsecs")
    page.get_by_label("quantum_ns, exact").press("Tab")
    page.evaluate("schedlab.playground.settled")
    assert page.get_by_label("quantum_ns, exact").get_attribute("aria-invalid") == "true"
    command = page.locator("#commands dd code").nth(1).inner_text()
    settings = [part.split()[0] for part in command.split(" --set ")[1:]]
    assert settings == ["mlfq.boost_ns=100ms", "mlfq.allotment=cumulative", "mlfq.rotate=yes"]
    (run,) = run_plan(make_plan(["mixed"], ["mlfq"], tmp_path, n_seeds=1, settings=settings)).runs
    assert page.evaluate(RESULTS)[1]["hash"] == run["record_hash"]


def test_the_address_is_the_whole_state(visit):
    page = visit("workload=classics/messages&cpus=3&seed=2&a=cfs&b=rr&b.slice_ns=2000000")
    first = page.evaluate(RESULTS)
    assert page.locator("select[name='workload']").input_value() == "classics/messages"
    assert page.get_by_label("slice_ns, exact").input_value() == "2ms"
    other = visit(page.evaluate("location.hash.slice(1)"))
    assert other.evaluate(RESULTS) == first
    assert other.locator("#numbers").inner_text() == page.locator("#numbers").inner_text()
    # What an address cannot say is left out, and no error.
    bad = visit("workload=nosuch&cpus=-3&seed=9&a=nosuch&a.x=1&b.slice_ns=junk")
    assert bad.evaluate("location.hash") == "#workload=mixed&cpus=1&seed=1&a=rr&b=mlfq"


def test_a_workload_of_ones_own_is_the_toml_that_it_shows(visit, simulator, tmp_path):
    page = visit("workload=mixed&seed=2&a=rr&b=mlfq")
    page.locator("select[name='workload']").select_option("own")

    def fill(label, text):
        page.get_by_label(label, exact=True).fill(text)
        page.get_by_label(label, exact=True).press("Tab")

    page.get_by_role("button", name="Add tasks").click()
    for label, text in (
        ("tasks, row 3", "late"), ("arrive at, row 3", "33ms"), ("compute, row 3", "7.5ms"), ("weight, row 3", "300"),
        ("so often, row 3", "4"), ("how many, row 1", "3"), ("so often, row 1", "2"), ("then sleep, row 2", "20ms"), ("tick", "1ms"),
    ):  # fmt: skip
        fill(label, text)
    for label, wrong in (("how many, row 1", "0"), ("compute, row 3", "soon"), ("tasks, row 3", "hog")):
        fill(label, wrong)
        assert page.get_by_label(label, exact=True).get_attribute("aria-invalid") == "true"
    page.evaluate("schedlab.playground.settled")
    page.get_by_text("As TOML").click()
    (tmp_path / "own.toml").write_text(page.locator("#own pre").inner_text())
    workload = load_workload(tmp_path / "own.toml")
    assert [(task.name, task.count) for task in workload.tasks] == [("hog", 3), ("editor", 1), ("late", 2)]
    program = bytes(page.evaluate("[...schedlab.playground.own.program(2)]"))
    assert program == compile_workload(workload, seed=2).data
    command = page.locator("#commands dd code").nth(1).inner_text()
    assert command.startswith("schedlab run ./own.toml -p mlfq")
    plan = make_plan([str(tmp_path / "own.toml")], ["rr", "mlfq"], tmp_path / "out", n_seeds=1, first_seed=2)
    hashes = [run["record_hash"] for run in run_plan(plan).runs]
    assert [found["hash"] for found in page.evaluate(RESULTS)] == hashes
    with page.expect_download() as download:
        page.get_by_text("download own.toml").first.click()
    assert download.value.path().read_text() == (tmp_path / "own.toml").read_text()
    # The address has it, and what is none of a form's is left out.
    again = visit(page.evaluate("location.hash.slice(1)"))
    assert [found["hash"] for found in again.evaluate(RESULTS)] == hashes
    bad = visit("workload=own&own={%22tick%22:-1,%22tasks%22:[[%22%3Cb%3E%22,1,0,1,0,1,100]]}&a=rr&b=")
    assert bad.evaluate("schedlab.playground.own.classes.map(([name]) => name)") == ["hog", "editor"]


def test_a_trace_for_perfetto_has_each_slice(visit, tmp_path):
    page = visit("workload=classics/messages&cpus=3&seed=2&a=cfs&b=")
    with page.expect_download() as download:
        page.get_by_text("download cfs-trace.json").click()
    events = json.loads(download.value.path().read_text())["traceEvents"]
    names = {(e["pid"], e.get("tid")): e["args"]["name"] for e in events if e["name"].endswith("_name")}
    assert names[1, None] == "CPUs" and names[1, 2] == "CPU 2"
    (found,) = page.evaluate(RESULTS)
    ran = {}
    for event in events:
        if event["ph"] == "X" and (event["pid"] == 1 or event["name"] == "ran"):
            ran[event["pid"]] = ran.get(event["pid"], 0) + event["dur"]
            assert (event["pid"], event["tid"]) in names
    run = page.evaluate(
        "Array.from(schedlab.playground.sides[0].result.slices.state).filter(s => s === 0).length"
    )
    assert run == sum(event["ph"] == "X" and event["pid"] == 1 for event in events)
    assert ran[1] == pytest.approx(ran[2]) and ran[1] > 0
    assert found["metrics"]["tasks"] == sum(pid == 2 and tid is not None for pid, tid in names)


def test_a_run_can_be_stopped_and_the_next_one_is_whole(visit):
    page = visit("workload=mixed&a=rr&b=")
    before = page.evaluate(RESULTS)
    page.evaluate("location.hash = 'workload=endless&cpus=1&seed=1&a=rr&a.slice_ns=1000&b='")
    page.evaluate(
        """async () => {
          while (schedlab.playground.sides[0].job?.workload.name !== "endless") await new Promise(done => setTimeout(done, 10));
        }"""
    )
    page.wait_for_timeout(200)
    page.get_by_role("button", name="Stop").click()
    assert page.locator("#state").inner_text() == "Stopped."
    assert page.get_by_role("button", name="Stop").is_disabled()
    assert choose(page, "workload=mixed&cpus=1&seed=1&a=rr&b=") == before
    assert page.evaluate("document.querySelector('#question b')") is None


def test_a_policy_that_fails_says_what_it_says_on_the_command_line(visit, folder, tmp_path):
    page = visit("workload=mixed&seed=1&a=crash&b=fifo")
    plan = make_plan(["mixed"], [str(folder / "crash.bpf.c")], tmp_path, n_seeds=1, host="wasm")
    (run,) = run_plan(plan).runs
    failed, good = page.evaluate(RESULTS)
    assert (failed["error"], failed["kind"]) == (run["error"], run["error_kind"])
    assert run["error"] in page.locator("#problems .bad").inner_text()
    assert good["error"] is None and good["metrics"]["tasks"] == 28
    # Side by side only where both are there.
    assert page.evaluate("schedlab.viewers[0].lanes.map(lane => lane.run !== null)") == [False, True]


def test_tasks_that_one_side_does_not_end_are_a_warning(visit):
    page = visit("workload=report-3/shares&cpus=2&seed=1&a=fifo&b=rr")
    counts = [r["metrics"]["tasks_started"] for r in page.evaluate(RESULTS)]
    text = page.locator("#problems").inner_text()
    assert (f"{counts[0]} of" in text and "ran at all" in text) == (counts[0] != counts[1])


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_width_scrolls_sideways(visit, width, scheme):
    page = visit(viewport={"width": width, "height": 800}, color_scheme=scheme)
    choose(page, "workload=mixed&cpus=1&seed=1&a=cfs&b=mlfq&b.boost_ns=100000000&b.quantum_ns=3000000")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_folder_can_be_served(folder):
    with folder_server(folder, 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        port = server.server_address[1]
        with pytest.raises(UsageError, match=f"--port {port}: .*in use"):
            folder_server(folder, port)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            assert answer.read() == (folder / "index.html").read_bytes()
        server.shutdown()
        thread.join()


def test_the_page_has_what_was_asked_for(folder):
    text = (folder / "index.html").read_text()
    about = json.loads(text.partition('id="about">')[2].partition("</script>")[0])
    assert [policy["name"] for policy in about["policies"]] == [*POLICIES, "crash"]
    assert about["seeds"] == [1, 2]
    assert [workload["name"] for workload in about["workloads"]] == [*WORKLOADS, "endless"]
