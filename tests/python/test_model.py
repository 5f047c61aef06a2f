# SPDX-License-Identifier: MIT
"""One list of options: every entry offers each of them, a host that lacks one says so, and a file keeps it."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from typer.main import get_command

import schedlab
from checkout.reproduce.spec import Runs
from schedlab.api import run as api_run
from schedlab.api import sweep as api_sweep
from schedlab.cli.app import app
from schedlab.errors import UsageError
from schedlab.hosts.choose import HOST_NAMES, ON_ALL, host_named, why_no_option
from schedlab.model import (
    OPTIONS,
    SCHEMA,
    Execution,
    Machine,
    RunList,
    RunResult,
    RunSpec,
    check_results,
    differences,
    given_options,
    json_schema,
    read_options,
)
from schedlab.runs.cells import Cell
from schedlab.runs.folders import read_run_folder
from schedlab.runs.gate import compare_folders
from schedlab.runs.plan import Plan
from schedlab.runs.remote import WorkItem
from schedlab.runs.run import make_plan, run_plan

#: A value of each option that is not its default, as a user writes it; and as a field has it.
GIVEN = {
    "cpus": (3, 3),
    "tick_ns": ("2ms", 2_000_000),
    "costs": (["switch_ns=2us", "ipi_ns=400"], {"switch_ns": 2000, "ipi_ns": 400}),
    "io": ({"latency_ns": "50us", "depth": 4}, {"latency_ns": 50_000, "depth": 4}),
    "topology": ("llc=4,smt=2", {"llc": 4, "smt": 2}),
    "capacity": ({"0-1": 1024, "2": 512}, "0-1=1024,2=512"),
    "above": (["1:20ms:5ms", "0:1:2"], ["0:1:2", "1:20000000:5000000"]),
    "offline": (["2:20ms:5ms", "1:1:2"], ["1:1:2", "2:20000000:5000000"]),
    "host": ("kernel", "kernel"),
    "is_parallel": (True, True),
    "is_sandboxed": (True, True),
    "are_threads": (True, True),
    "kernel": ("bzImage", Path("bzImage")),
    "scale": (0.5, 0.5),
    "timeout_seconds": ("90s", 90.0),
}
#: Of a host that has a part of an option only.
OF_HOST = {("guest", "topology"): {"node": 2}}
#: Entries that lack an option, and why.
LACKS: dict[str, dict[str, str]] = {"run": {}, "replay": {}, "schedlab.run": {}, "schedlab.sweep": {}}


def test_each_option_has_a_value_in_these_tests():
    assert set(GIVEN) == set(OPTIONS)
    assert {
        name for kind in (Machine, Execution) for name in (f.name for f in dataclasses.fields(kind))
    } == set(OPTIONS)


@pytest.mark.parametrize("entry", LACKS)
def test_each_entry_offers_each_option_or_says_why_not(entry):
    """The next option cannot be forgotten: it is a field, and each list here is made from the fields or held to them."""
    if entry.startswith("schedlab."):
        function = {"schedlab.run": api_run, "schedlab.sweep": api_sweep}[entry]
        offered = set(inspect.signature(function).parameters)
        wanted = {option.word: name for name, option in OPTIONS.items()}
    else:
        command = get_command(app).commands[entry]
        offered = {flag for parameter in command.params for flag in parameter.opts}
        wanted = {option.flag: name for name, option in OPTIONS.items()}
    missing = {name for word, name in wanted.items() if word not in offered}
    assert missing == set(LACKS[entry])


def test_plans_cells_sets_and_remote_work_carry_the_types_themselves():
    for kind in (Plan, Cell, Runs, RunSpec):
        fields = {each.name: each.type for each in dataclasses.fields(kind)}
        assert (fields["machine"], fields["execution"]) == ("Machine", "Execution"), kind
    assert {each.name: each.type for each in dataclasses.fields(WorkItem)}["plan"] == "Plan"


def test_a_run_json_has_each_option_and_each_field_of_its_spec():
    keys = set(RunResult.__annotations__)
    spec = {each.name for each in dataclasses.fields(RunSpec)} - {"machine", "execution"}
    assert set(OPTIONS) | spec | {"schema"} <= keys


@pytest.mark.parametrize("name", GIVEN)
def test_an_option_reads_what_is_written_and_what_it_has_written(name):
    given, value = GIVEN[name]
    option = OPTIONS[name]
    assert option.read(option.flag, given) == value
    assert option.read(option.flag, value) == value
    dumped = json.loads(json.dumps(option.write(value)))
    assert option.read(option.flag, dumped) == value


@pytest.mark.parametrize("name", GIVEN)
def test_options_that_differ_are_said_and_decide_whether_policies_are_compared(name):
    option = OPTIONS[name]
    spec = RunSpec(workload="w", policy="rr", seed=1, machine=Machine(), execution=Execution())
    other = {**spec.as_json(), name: option.write(GIVEN[name][1])}
    pairs = [(spec.as_json(), other)]
    (text,) = differences(pairs, conditions=option.is_condition)
    assert text.startswith(f"{option.flag} differs: ")
    assert differences(pairs, conditions=not option.is_condition) == []
    # A file that is older than an option was made without it.
    older = {key: value for key, value in spec.as_json().items() if key != name}
    assert differences([(older, spec.as_json())], conditions=option.is_condition) == []
    assert RunSpec.from_json(older) == spec
    assert option.is_condition == (name != "timeout_seconds")


@pytest.mark.parametrize("host", HOST_NAMES)
@pytest.mark.parametrize("name", [name for name in GIVEN if name != "host"])
def test_a_host_has_an_option_or_refuses_it_by_name_and_value(host, name):
    option, value = OPTIONS[name], OF_HOST.get((host, name), GIVEN[name][1])
    parts = {
        kind: {name: value} if name in {f.name for f in dataclasses.fields(kind)} else {}
        for kind in (Machine, Execution)
    }
    machine, execution = Machine(**parts[Machine]), Execution(host=host, **parts[Execution])
    refusals = why_no_option(machine, execution)
    if name in ON_ALL | host_named(host).options:
        assert refusals == []
    else:
        (refusal,) = refusals
        text = given_options(machine, execution)[name]
        assert text.split()[0] == option.flag
        having = ", ".join(each for each in HOST_NAMES if name in host_named(each).options)
        assert refusal == f"{text}: means nothing on --host {host}; hosts that have it: {having}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"cpus": "4"}, "--cpus must be 1 to 1024 (got '4')"),
        ({"cpus": True}, "--cpus must be 1 to 1024 (got True)"),
        ({"cpus": 2.0}, "--cpus must be 1 to 1024 (got 2.0)"),
        ({"tick": "5"}, "--tick: '5' has no unit"),
        ({"tick": "5KiB"}, "--tick: "),
        ({"tick": 0.5}, "--tick: "),
        (
            {"costs": "switch_ns=2us"},
            "--cost must be NAME=VALUE, such as switch_ns=2us (got 'switch_ns=2us')",
        ),
        ({"costs": 5}, "--cost must be NAME=VALUE"),
        (
            {"costs": {"swich_ns": "2us"}},
            "--cost swich_ns=2us: unknown name 'swich_ns' (did you mean 'switch_ns'?)",
        ),
        ({"costs": {"switch_ns": 1.5}}, "--cost switch_ns=1.5: '1.5' has no unit"),
        ({"io": ["depth"]}, "--io depth: should read NAME=VALUE, such as latency_ns=100us"),
        ({"above": "0:1ms:1ms"}, "--above must be CPU:START:LENGTH, such as 0:20ms:5ms (got '0:1ms:1ms')"),
        ({"above": ["0:1ms"]}, "--above 0:1ms: should read CPU:START:LENGTH, such as 0:20ms:5ms"),
        ({"above": ["0:1ms:0ms"]}, "--above 0:1ms:0ms: length must be 1 to"),
        ({"above": ["1024:1ms:1ms"]}, "--above 1024:1ms:1ms: CPU must be 0 to 1023 (got 1024)"),
        ({"offline": ["0:1ms:1ms"]}, "--offline 0:1ms:1ms: CPU must be 1 to 1023 (got 0)"),
        ({"offline": ["1:1ms"]}, "--offline 1:1ms: should read CPU:START:LENGTH, such as 1:20ms:5ms"),
        ({"capacity": "0-3"}, "--capacity 0-3: should read 0-3=1024,4-7=512"),
        ({"capacity": 512}, "--capacity 512: should read 0-3=1024,4-7=512"),
        ({"capacity": "3-1=512"}, "--capacity 3-1=512: CPUs must be 0 to 1023, the lower one first"),
        ({"capacity": "1024=512"}, "--capacity 1024=512: CPUs must be 0 to 1023"),
        ({"capacity": "0-3=1024,3=512"}, "--capacity 3=512: a CPU is given twice; name each once"),
        ({"capacity": "0=0"}, "--capacity 0=0: a capacity must be 1 to 1024 (got 0)"),
        ({"topology": {"smt": 0}}, "--topology smt=0: smt must be 1 to 1024 (got 0)"),
        ({"topology": 2}, "--topology 2: should read smt=2,llc=8,node=16"),
        ({"topology": "smt=2,smt=4"}, "--topology smt=2,smt=4: a part is given twice; name each once"),
        ({"topology": "cache=2"}, "--topology cache=2: should read"),
        ({"host": 3}, "--host must be a name (got 3)"),
        ({"threads": "yes"}, "--threads is given or not: True or False (got 'yes')"),
        ({"parallel": 1}, "--parallel is given or not"),
        ({"kernel": 5}, "--kernel must be a file (got 5)"),
        ({"scale": "half"}, "--scale must be above 0, such as 0.01 (got 'half')"),
        ({"scale": float("nan")}, "--scale must be above 0, such as 0.01 (got nan)"),
        ({"timeout": "5"}, "--timeout: '5' has no unit"),
        ({"timeout": -1.0}, "--timeout must be above 0 (got -1 s)"),
        ({"timeot": "5s"}, "timeot: there is no such option (did you mean 'timeout'?)"),
    ],
)
def test_a_wrong_option_is_named_with_its_value_and_what_would_be_right(words, message):
    machine, execution, problems = read_options(words)
    (problem,) = problems
    assert problem.startswith(message) and "\n" not in problem
    assert (machine, execution) == (Machine(), Execution())


def test_a_class_refuses_what_its_option_refuses_all_at_once():
    with pytest.raises(UsageError, match=r"^--cpus must be 1 to 1024 \(got 0\)\n--tick must be 1us to 10s"):
        Machine(cpus=0, tick_ns=5)


def test_options_that_the_host_lacks_stop_a_call_before_anything_is_written(tmp_path):
    out = tmp_path / "out"
    for call in (schedlab.run, schedlab.sweep):
        with pytest.raises(UsageError, match="--kernel bzImage: means nothing on --host sim; .*: guest"):
            call("textbook/rr", "rr", kernel="bzImage", out=out)
    assert not out.exists()


# ---- files -------------------------------------------------------------------


@pytest.fixture
def before(root) -> Path:
    """Two runs as they were written before `run.json` had a version."""
    return root / "tests" / "python" / "run_before_schema.json"


def test_a_run_from_before_versions_is_read_and_compares(before, tmp_path):
    old = read_run_folder(before)
    assert [run["consistency"] for run in old] == ["ok", "ok"]  # the file has `physics`
    assert all("schema" not in run for run in old)
    made = schedlab.run(
        "textbook/rr",
        "rr",
        seeds=2,
        cpus=2,
        costs={"switch_ns": "2us"},
        topology="smt=2",
        tick="1ms",
        out=tmp_path,
    )
    assert made.is_good
    new = read_run_folder(tmp_path)
    assert [run["schema"] for run in new] == [SCHEMA, SCHEMA]
    assert [run["record_hash"] for run in new] == [run["record_hash"] for run in old]
    assert [RunSpec.from_json(run) for run in new] == [RunSpec.from_json(run) for run in old]
    # Besides the version, this machine, the headers of policies and options that have come since
    # nothing has changed in what is written.
    changed = {
        key for a, b in zip(old, new, strict=True) for key in a.keys() | b.keys() if a.get(key) != b.get(key)
    }
    of_headers, newer = {"policy_hash", "source"}, {"above", "capacity", "is_sandboxed", "metrics", "offline"}
    assert all(a["metrics"].items() <= b["metrics"].items() for a, b in zip(old, new, strict=True))
    assert changed <= {"schema", "directory", "command_line", "environment"} | of_headers | newer
    found = compare_folders(before, tmp_path)
    assert not found["is_failed"] and found["comparisons"][0]["differs"] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema": 99},
            "run 2 has schema 99, and schedlab reads up to 1; read it with the schedlab that wrote it: 0.1",
        ),
        ({"schema": "1"}, "run 2 has schema '1'"),
        ({"schema": True}, "run 2 has schema True"),
        (
            {"cpus": "2"},
            r"run 2: 'cpus': Input should be a valid integer \(got '2'\); give what `schedlab run` wrote",
        ),
        ({"metrics": []}, "run 2: 'metrics': "),
        ({"schema": 1, "costs": ["swich_ns=1"]}, "run 2: --cost swich_ns=1: unknown name 'swich_ns'"),
        ({"schema": 1, "topology": "smt=0"}, "run 2: --topology smt=0: smt must be 1 to 1024"),
        ({"schema": 1, "tick_ns": 3}, "run 2: --tick must be 1us to 10s"),
    ],
)
def test_a_damaged_run_is_named_with_file_run_and_key(before, tmp_path, change, message):
    runs = json.loads(before.read_text())["runs"]
    runs[1] |= change
    (tmp_path / "runs.json").write_text(json.dumps({"runs": runs}))
    with pytest.raises(UsageError, match=f"^{tmp_path}/runs.json: {message}"):
        read_run_folder(tmp_path)


def test_the_published_schema_is_the_commands(root, capsys):
    """Write it anew with `schedlab schema > docs/run.schema.json`."""
    app(["schema"], standalone_mode=False)
    assert capsys.readouterr().out == (root / "docs" / "run.schema.json").read_text()


def test_what_a_run_writes_has_its_keys_and_types_in_the_schema(tmp_path):
    made = make_plan(["textbook/rr"], ["rr", "fifo"], tmp_path / "out", n_seeds=2, costs=["switch_ns=2us"])
    result = run_plan(made)
    for given in (json.loads(result.as_json()), json.loads((tmp_path / "out/runs.json").read_text())):
        TypeAdapter(RunList).validate_python(given, strict=True)
    keys = json_schema()["$defs"]
    for run in result.runs:
        held = json.loads((Path(run["directory"]) / "run.json").read_text())
        assert set(held) <= set(keys["RunResult"]["properties"])
        assert set(run) == set(held) - {"host_answer"}
        assert RunSpec.from_json(held).machine.costs == {"switch_ns": 2000}
    assert {key for each in result.comparisons for key in each} == set(keys["Comparison"]["properties"])


def test_keys_that_a_later_version_adds_are_kept(before):
    runs = json.loads(before.read_text())["runs"]
    assert check_results([run | {"mood": "good"} for run in runs], "x")[0]["mood"] == "good"
