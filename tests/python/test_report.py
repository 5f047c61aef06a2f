# SPDX-License-Identifier: MIT
"""The page says what runs.json says, hides no failure, and no name can harm it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from python.packed_slices import unpack_numbers, unpack_slices
from python.record_files import timeline_of
from python.report_folders import EVIL, WORKLOAD, Page, make_runs, many_slices, rename_tasks
from schedlab.errors import NotFoundError, UnavailableError, UsageError
from schedlab.metrics.timeline import Timeline
from schedlab.paths import policies_folder
from schedlab.plots import charts as plots
from schedlab.plots import installed
from schedlab.plots.gantt import BLOCKED, RAN, STILL_RUNNING, WAITED, slices_of
from schedlab.records.file import Kind, Stop, read_records
from schedlab.report import data as report_data
from schedlab.report import over_time as report_time
from schedlab.report.data import curve, read_sections
from schedlab.report.write import write_report
from schedlab.runs.run import folder_name, make_plan, run_plan

MS = 1_000_000


@pytest.fixture(scope="module")
def runs(simulator, tmp_path_factory):
    """Two policies by six seeds, and one policy that does not compile."""
    return make_runs(tmp_path_factory.mktemp("report"), is_broken=True)


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "page.html"
    write_report(runs, out)
    return out.read_text(encoding="utf-8")


# ---- wrong use


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match="holds no run"):
        write_report(tmp_path, tmp_path / "page.html")


def test_an_unknown_workload_is_refused_with_those_that_are_there(runs, tmp_path):
    with pytest.raises(UsageError, match="--workload web: not in .*which has naps"):
        write_report(runs, tmp_path / "page.html", workload="web")


@pytest.mark.full
def test_a_place_that_cannot_be_written_is_refused(runs, tmp_path):
    with pytest.raises(UsageError, match="cannot be written: No such file or directory"):
        write_report(runs, tmp_path / "nowhere" / "page.html")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--figures .*cannot be written"):
        write_report(runs, tmp_path / "page.html", figures=tmp_path / "file")


# ---- what repeats it


def test_the_page_has_all_that_repeats_it(simulator, tmp_path):
    """Command, every option, and the policy's own source, also when its file has changed since."""
    mine = tmp_path / "mine.bpf.c"
    mine.write_text(f"/* {EVIL} */\n" + (policies_folder() / "rr.bpf.c").read_text())
    workload = tmp_path / "naps.toml"
    workload.write_text(WORKLOAD)
    run_plan(
        make_plan(
            workloads=[str(workload)],
            policies=[str(mine)],
            out=tmp_path / "runs",
            costs=["switch_ns=2us"],
            io=["latency_ns=5ms"],
            topology="smt=2",
            command_line="./lab run naps.toml -p mine.bpf.c",
        )
    )
    mine.write_text("changed")
    write_report(tmp_path / "runs", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for fact in ("<dt>command</dt><dd>./lab run naps.toml -p mine.bpf.c</dd>", "<dt>--cost</dt><dd>switch_ns=2000</dd>",
                 "<dt>--io</dt><dd>latency_ns=5000000</dd>", "<dt>--topology</dt><dd>smt=2</dd>", "<dt>--timeout</dt><dd>300 s</dd>",
                 "<summary>Source: mine.bpf.c</summary>", "SCX_OPS_DEFINE"):  # fmt: skip
        assert fact in text, fact
    assert EVIL not in text


# ---- numbers


def test_every_cell_is_the_mean_of_runs_json(runs, page):
    listed = [r for r in json.loads((runs / "runs.json").read_text())["runs"] if r["status"] == "ok"]
    cells = Page(page).cells
    assert {policy for policy, _, _ in cells} == {"rr", "cfs"}
    assert len(cells) > 60
    for policy, metric, mean in cells:
        values = [r["metrics"][metric] for r in listed if r["policy"] == policy]
        assert mean == pytest.approx(statistics.fmean(values), rel=1e-12), (policy, metric)


def test_an_interval_is_that_of_the_statistics(runs):
    section = read_sections(runs)[0]
    from schedlab.stats.inference import mean_interval

    values = [r["metrics"]["response_ns_mean"] for r in section.good["rr"]]
    expected, found = mean_interval(values), section.intervals["rr"]["response_ns_mean"]
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.low < found.estimate < found.high


def test_sentences_and_question_are_there(page):
    text = " ".join("".join(Page(page).texts).split())
    assert "Paired by 6 seeds" in text
    assert "naps: Two that compute, two that nap" in text and "Who is served first?" in text
    assert "mean turnaround" in text.lower()
    assert "2 of 3 policies got the same 5 tasks" in text


@pytest.mark.parametrize("values", [[], [5], [3, 3, 3], [4, 1, 2, 2]])
def test_a_curve_gives_the_part_that_is_at_most_each_value(values):
    points = curve(np.array(values, np.int64))
    assert points == [(v, sum(x <= v for x in values) / len(values)) for v in sorted(set(values))]


def test_a_long_curve_is_thinned_and_stays_true():
    values = np.random.default_rng(1).integers(0, 10**9, 50_000)
    points = curve(values)
    assert len(points) <= report_data.CURVE_POINTS
    assert points[0][0] == values.min() and points[-1] == (values.max(), 1.0)
    for value, part in points[:: len(points) // 7]:
        assert part == np.mean(values <= value)


def test_shares_add_up_to_all_that_was_received(runs):
    section = read_sections(runs)[0]
    rows = [row for row in report_data.share_rows(section) if row["policy"] == "rr"]
    received = {row["task"]: row["received"] for row in rows}
    assert 3 * received["hog"] + 2 * received["nap"] == pytest.approx(1)


def test_fairness_over_time_ends_at_the_fairness_of_the_run(runs):
    section = read_sections(runs)[0]
    rows, charts = report_data.time_charts(section)
    assert len(charts) == 2
    for policy, run in section.at_shown_seed().items():
        last = [row for row in rows if row["policy"] == policy][-1]
        assert last["fairness"] == pytest.approx(run["metrics"]["fairness_jain"], rel=1e-9)


def test_fairness_over_time_by_hand():
    """Two equal tasks on one CPU; only one has run by 10 ms, both by 20 ms."""
    timeline = timeline_of([
        (0, 1, 0, Kind.ARRIVE, 0, 0), (0, 2, 0, Kind.ARRIVE, 0, 0),
        (0, 1, 0, Kind.RUN, 0, 0), (10 * MS, 1, 0, Kind.STOP, Stop.PREEMPTED, 10 * MS),
        (10 * MS, 2, 0, Kind.RUN, 0, 0), (20 * MS, 2, 0, Kind.STOP, Stop.PREEMPTED, 10 * MS),
    ])  # fmt: skip
    points = report_time.fairness_so_far(timeline, n_steps=4)
    shares = [(1, 0), (1, 0), (2 / 3, 1 / 3), (1 / 2, 1 / 2)]
    expected = [(a + b) ** 2 / (2 * (a * a + b * b)) for a, b in shares]
    assert [t for t, _ in points] == [5 * MS, 10 * MS, 15 * MS, 20 * MS]
    assert [index for _, index in points] == pytest.approx(expected)


# ---- slices


@given(st.lists(st.integers(0, 2**63 - 1)))
def test_packed_numbers_come_back(values):
    packed = report_time.pack_numbers(np.array(values, np.uint64))
    assert unpack_numbers(packed) == values


def test_slices_worked_out_by_hand():
    timeline = timeline_of([
        (0, 1, 0, Kind.ARRIVE, 0, 0), (0, 2, 0, Kind.ARRIVE, 0, 0),
        (0, 1, 0, Kind.RUN, 0, 0), (10 * MS, 1, 0, Kind.STOP, Stop.BLOCKED, 10 * MS),
        (10 * MS, 2, 0, Kind.RUN, 0, 0), (25 * MS, 1, 0, Kind.WAKE, 0, 0),
        (30 * MS, 2, 0, Kind.STOP, Stop.YIELDED, 20 * MS), (30 * MS, 1, 0, Kind.RUN, 0, 0),
        (30 * MS, 1, 0, Kind.STOP, Stop.EXITED, 0), (32 * MS, 2, 0, Kind.RUN, 0, 0),
    ], end_ns=40 * MS)  # fmt: skip
    text = report_time.pack_slices(slices_of(timeline))
    assert unpack_slices(text) == [
        (1, 0, 10 * MS, RAN, Stop.BLOCKED, 0),
        (1, 10 * MS, 25 * MS, BLOCKED, 0, 0),
        (1, 25 * MS, 30 * MS, WAITED, 0, 0),
        (1, 30 * MS, 30 * MS, RAN, Stop.EXITED, 0),
        (2, 0, 10 * MS, WAITED, 0, 0),
        (2, 10 * MS, 30 * MS, RAN, Stop.YIELDED, 0),
        (2, 30 * MS, 32 * MS, WAITED, 0, 0),
        (2, 32 * MS, 40 * MS, RAN, STILL_RUNNING, 0),
    ]


def test_slices_of_a_run_add_up_to_its_cpu_time(runs):
    section = read_sections(runs)[0]
    for run in section.at_shown_seed().values():
        timeline = Timeline(read_records(section.folder(run) / "records.slr"))
        rows = unpack_slices(report_time.pack_slices(slices_of(timeline)))
        ran = sum(end - begin for _, begin, end, state, *_ in rows if state == RAN)
        assert ran == run["metrics"]["busy_ns"]


def test_too_many_slices_are_cut_at_a_moment_and_it_is_said(runs):
    section = read_sections(runs)[0]
    run = section.at_shown_seed()["rr"]
    timeline = Timeline(read_records(section.folder(run) / "records.slr"))
    whole, part = slices_of(timeline), slices_of(timeline, n_max=50)
    assert len(part.pid) <= 50 < len(whole.pid)
    assert part.shown_until_ns < whole.shown_until_ns == timeline.records.end_ns
    assert len(part.pid) == (whole.begin_ns < part.shown_until_ns).sum()
    assert part.end_ns.max() <= part.shown_until_ns


# ---- honesty


def test_verdict_failures_and_warnings_stand_above_the_numbers(page):
    first = page.index("<table")
    assert 0 < page.index("Consistency: ok in 12 of 18 runs.") < first
    assert 0 < page.index("Failed: broken on every workload") < first
    # The compiler's words, but as text.
    assert "int &lt;script&gt; oops;" in page[:first]


def test_warnings_about_few_seeds_are_said(simulator, tmp_path):
    runs = make_runs(tmp_path, n_seeds=3)
    write_report(runs, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert 0 < text.index("only 3 runs") < text.index("<table")


@pytest.mark.full
def test_runs_whose_files_are_gone_are_named(simulator, tmp_path):
    runs = make_runs(tmp_path, n_seeds=2)
    (runs / "naps" / "rr" / "seed-1" / "records.slr").unlink()
    for path in (runs / "naps" / "programs").iterdir():
        path.unlink()
    write_report(runs, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert re.search(r"rr, seed 1: [^<]*records.slr: at byte 0: cannot be read", text)
    assert "and with it the tasks' weights" in html.unescape(text)
    # The other policy is still drawn in time.
    assert text.count("data-chart=") == 1 + text.count("script[data-chart=")


@pytest.mark.full
def test_a_folder_that_was_moved_is_read_where_it_is(simulator, tmp_path):
    runs = make_runs(tmp_path / "a", n_seeds=2)
    moved = tmp_path / "b"
    shutil.move(runs, moved)
    write_report(moved, tmp_path / "whole.html")
    write_report(moved / "naps" / "cfs", tmp_path / "part.html")
    for name, charts in (("whole", 2), ("part", 1)):
        text = (tmp_path / f"{name}.html").read_text()
        assert text.count('type="text/plain" data-chart=') == charts
        assert "Not everything could be shown" not in text


def test_comparisons_of_an_older_version_are_made_again(simulator, tmp_path):
    """Their "no difference seen" is no verdict any more, and was once read as one side's victory."""
    runs = make_runs(tmp_path, n_seeds=2)
    stored = json.loads((runs / "runs.json").read_text())
    for comparison in stored["comparisons"]:
        del comparison["n_explored"]
        for entry in comparison["metrics"].values():
            entry |= {"verdict": "no difference seen", "better": None}
    (runs / "runs.json").write_text(json.dumps(stored))
    verdicts = {
        m["verdict"] for s in read_sections(runs) for c in s.comparisons for m in c["metrics"].values()
    }
    assert verdicts and "no difference seen" not in verdicts


def test_report_takes_another_baseline(simulator, tmp_path):
    runs = make_runs(tmp_path, n_seeds=2)
    pairs = [
        [(c["policy_a"], c["policy_b"]) for s in read_sections(runs, baseline=name) for c in s.comparisons]
        for name in (None, "cfs")
    ]
    assert pairs == [[("rr", "cfs")], [("cfs", "rr")]]
    with pytest.raises(UsageError, match=r"--baseline fifo: not in .*, which has rr, cfs"):
        write_report(runs, tmp_path / "page.html", baseline="fifo")


@pytest.mark.full
def test_a_source_outside_of_the_run_is_not_shown(simulator, tmp_path):
    runs = make_runs(tmp_path, n_seeds=1)
    (runs / "secret").write_text("not of this run")
    for path in [runs / "runs.json", *runs.glob("naps/*/seed-1/run.json")]:
        path.write_text(re.sub(r'"files": \["', '"files": ["../../../secret", "', path.read_text()))
    write_report(runs, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "not of this run" not in text and "SCX_OPS_DEFINE" in text


def test_only_failed_runs_still_make_a_page(simulator, tmp_path):
    runs = make_runs(tmp_path, policies=(), n_seeds=1, is_broken=True)
    write_report(runs, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "Failed: broken" in text and "Consistency: ok" not in text


def test_a_run_that_failed_has_its_chart_and_why_the_task_waited(simulator, root, tmp_path):
    text = "[[task]]\nname = '{}'\ncount = {}\nphases = [{{loop = 'forever', do = [{}]}}]\n"
    (tmp_path / "w.toml").write_text(
        "[workload]\nhorizon = '50s'\njitter = '0s'\n[[lock]]\nname = 'm'\n" + text.format("a", 1, "{run = '100ms'}")
        + text.format("b", 2, "{lock = 'm'}, {run = '1ms'}, {unlock = 'm'}")
    )  # fmt: skip
    starves = root / "tests/check/bugs/urgent_always_first.bpf.c"
    run_plan(make_plan([str(tmp_path / "w.toml")], ["rr", str(starves)], tmp_path / "runs"))
    write_report(tmp_path / "runs", tmp_path / "page.html")
    page = Page((tmp_path / "page.html").read_text())
    shown = " ".join("".join(page.texts).split())
    assert "urgent_always_first, failed with seed 1." in shown and "a[1] waited for " in shown
    assert "Cause: the policy preferred tasks that became runnable later: 100 %" in shown
    (moment,) = [json.loads(attrs["data-moment"]) for _, attrs in page.elements if "data-moment" in attrs]
    # It is the second chart, whose records end where the policy was ended.
    assert moment["charts"] == [1, ""] and moment["pid"] == 1 and 30e9 < moment["view"][1] < 50e9


def test_a_name_that_is_markup_stays_a_name(simulator, tmp_path):
    runs = make_runs(tmp_path, n_seeds=2)
    rename_tasks(runs, {"hog": EVIL, "nap": "a&b\"c'</script><img src=x onerror=alert(1)>"})
    content = json.loads((runs / "runs.json").read_text())
    for entry in content["runs"]:
        entry["workload"] = entry["title"] = entry["question"] = EVIL
        entry["knobs"], entry["kernel"] = {EVIL: 1}, EVIL
    content["comparisons"] = []
    (runs / "runs.json").write_text(json.dumps(content))
    home = runs / folder_name(EVIL)
    home.parent.mkdir(exist_ok=True)
    (runs / "naps").rename(home)
    write_report(runs, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    found = Page(text)
    kinds = [attrs.get("type") for tag, attrs in found.elements if tag == "script"]
    assert kinds.count(None) == 1
    assert set(kinds) == {None, "application/json", "text/plain"}
    assert not any(tag == "img" or "onerror" in attrs for tag, attrs in found.elements)
    assert EVIL in "".join(found.texts), "the name is shown as it is"


# ---- the file


def test_the_page_loads_nothing_and_runs_only_its_own_script(page):
    found = Page(page)
    for tag, attrs in found.elements:
        assert tag not in ("link", "iframe", "img", "object"), tag
        for name in ("src", "href", "xlink:href"):
            value = attrs.get(name)
            assert value is None or value.startswith("#"), (tag, value)
    policy = next(a["content"] for t, a in found.elements if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(found.scripts[-1].encode()).digest()).decode()
    assert policy.startswith("default-src 'none'") and f"'sha256-{digest}'" in policy
    ids = [attrs["id"] for _, attrs in found.elements if "id" in attrs]
    assert len(ids) == len(set(ids)), "a clip of one chart would cut another"
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert set(re.findall(r"url\((#?)([^)]*)\)", markup)) <= {("#", name) for name in ids}


def test_every_sample_is_a_dot(runs):
    section = read_sections(runs)[0]
    rows = report_data.sample_rows(section, "response_ns_mean")
    assert len(rows) == 12
    tree = ElementTree.fromstring(plots.to_svg(plots.samples(rows, "response_ns_mean")))
    dots = [e for e in tree.iter() if e.get("fill") == plots.PALETTE[0] and e.get("d")]
    assert len(dots) == 12


def test_a_policy_that_is_ten_times_worse_is_darkest(runs):
    rows = report_data.heat_rows(read_sections(runs)[0])
    assert {row["policy"] for row in rows} == {"rr", "cfs"}
    assert min(row["worse"] for row in rows) == 1
    for metric in {row["metric"] for row in rows}:
        assert min(row["worse"] for row in rows if row["metric"] == metric) == 1


def test_a_page_without_what_draws_says_so_and_has_all_numbers(runs, page, tmp_path, monkeypatch):
    """The extra `pictures` is not part of a default installation."""
    for name in ("altair", "vl_convert", "schedlab.plots.charts"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    out = tmp_path / "page.html"
    with pytest.raises(UnavailableError, match="--figures .*: charts need .*: pip install altair"):
        write_report(runs, out, figures=tmp_path / "figures")
    assert not out.exists()
    write_report(runs, out)
    bare = out.read_text(encoding="utf-8")
    assert "Not drawn: charts need" in bare and "<svg" in page and "<svg" not in bare
    tables = re.compile(r"<table.*?</table>|<li>.*?</li>", re.S)
    assert tables.findall(bare) == tables.findall(page)


@pytest.mark.full
def test_figures_are_the_charts_of_the_page(runs, tmp_path):
    made = write_report(runs, tmp_path / "page.html", figures=tmp_path / "figures")
    stems = {path.stem for path in made.figures}
    assert {
        "naps-sim-2cpu-heat",
        "naps-sim-2cpu-samples-response_ns_mean",
        "naps-sim-2cpu-response",
        "naps-sim-2cpu-wakeup",
        "naps-sim-2cpu-shares",
        "naps-sim-2cpu-fairness",
    } <= stems
    for path in made.figures:
        data = path.read_bytes()
        assert data.startswith(b"%PDF") if path.suffix == ".pdf" else ElementTree.fromstring(data) is not None
        # A paper has no style sheet, so a figure brings its colours.
        assert b"var(--" not in data


@pytest.mark.full
def test_a_hundred_thousand_slices_stay_small(tmp_path):
    made = write_report(many_slices(tmp_path / "runs", n_slices=60_000), tmp_path / "page.html")
    assert made.n_bytes < 1_000_000


# ---- the command


def schedlab(*arguments, cwd):
    environment = os.environ | {"PYTHONPATH": str(Path(report_data.__file__).parents[2])}
    return subprocess.run(
        [sys.executable, "-m", "schedlab", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        check=False,
        timeout=120,
    )


@pytest.mark.full
def test_the_command_writes_beside_the_runs_and_says_where(runs, tmp_path):
    copy = shutil.copytree(runs, tmp_path / "runs")
    done = schedlab("report", copy, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"wrote {copy / 'report.html'}, ")
    done = schedlab("report", copy, "--json", "--out", "page.html", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found == {
        "path": "page.html",
        "bytes": (tmp_path / "page.html").stat().st_size,
        "runs": 18,
        "figures": [],
    }


@pytest.mark.full
def test_the_command_explains_what_it_was_given(runs, tmp_path):
    done = schedlab("report", tmp_path / "nothing", cwd=tmp_path)
    assert done.returncode == 2 and "no such folder" in done.stderr
    done = schedlab("report", runs, "--out", tmp_path, cwd=tmp_path)
    assert done.returncode == 2 and "is a folder; name a file, such as" in done.stderr


@pytest.mark.full
def test_the_demo_says_where_its_page_is(simulator, tmp_path):
    done = schedlab("demo", "--seeds", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    path = re.search(r"^Page about mixed: (\S+);", done.stdout, re.M)[1]
    assert "mixed under 7 policies" in (tmp_path / path).read_text()
