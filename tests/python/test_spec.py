# SPDX-License-Identifier: MIT
"""Reading workloads: every mistake has its place, its value and a hint."""

from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab import units
from schedlab.errors import NotFoundError, SpecError, UnitError, UsageError
from schedlab.program.compiler import compile_workload
from schedlab.toml_file import Source
from schedlab.workload.find import list_workloads, load_workload
from schedlab.workload.params import evaluate
from schedlab.workload.phases import walk
from schedlab.workload.spec import parse_workload

HEAD = '[workload]\ntitle = "T"\nquestion = "Q?"\n'


def faults(text, **options):
    with pytest.raises(SpecError) as caught:
        parse_workload(text, name="web.toml", **options)
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()


def task(phases, more="", name="a"):
    return f'[[task]]\nname = "{name}"\n{more}\nphases = [{phases}]\n'


# ---- units -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("5", "'5' has no unit; write '5ms'"),
        (5, "5 has no unit"),
        ("5mss", r"unknown unit 'mss' \(did you mean 'ms'\?\)"),
        ("-5ms", "negative"),
        ("0.5ns", "not a whole number of nanoseconds"),
        ("64KiB", "is a size; a time is needed"),
        ("3ticks", "ticks have no length here"),
        ("200000h", "'200000h'|more than"),
        ("2000000h", "more than"),
        ("soon", "not a number with a unit"),
        (True, "not a number with a unit"),
        ("", "not a number"),
    ],
)
def test_bad_durations(text, why):
    if text == "200000h":
        assert units.parse_duration(text) == 200_000 * 3600 * 10**9
        return
    with pytest.raises(UnitError, match=why):
        units.parse_duration(text)


@pytest.mark.parametrize(
    ("text", "why"), [("5ms", "is a time; a size"), ("1.5B", "whole number of bytes"), ("-1B", "negative")]
)
def test_bad_sizes(text, why):
    with pytest.raises(UnitError, match=why):
        units.parse_size(text)


def test_good_units():
    assert units.parse_duration("1.5ms") == 1_500_000
    assert units.parse_duration("2_000 us") == 2_000_000
    assert units.parse_duration("3µs") == 3_000
    assert units.parse_duration("3ticks", tick_ns=7) == 21
    assert units.parse_duration(0) == 0
    assert units.parse_size("1KiB") == 1024
    assert units.parse_size("1kB") == 1000
    assert units.parse_size(512) == 512


@given(st.integers(0, units.TIME_MAX_NS))
def test_durations_survive_a_round_trip(time_ns):
    assert units.parse_duration(units.format_duration(time_ns)) == time_ns


@given(st.integers(0, units.TIME_MAX_NS))
def test_sizes_survive_a_round_trip(size_bytes):
    assert units.parse_size(units.format_size(size_bytes)) == size_bytes


# ---- positions and the collection of faults -------------------------------------


def test_all_mistakes_at_once_with_lines():
    text = """[workload]
title = "T"
question = "Q?"
horizn = "5ms"

[[task]]
name = "web"
niice = 3
nice = 40
count = 0
phases = [
    {run = "5ms"},
    {run = "1ms"}, {slep = "10ms"},
    {loop = 3, do = [
        {run = "5mss"},
        {sleep = "5"},
    ]},
]

[[task]]
name = "b"
phases = [{unlock = "m"}]
"""
    assert faults(text) == [
        "web.toml:4: workload: unknown key 'horizn' (did you mean 'horizon'?)",
        "web.toml:8: task 'web': unknown key 'niice' (did you mean 'nice'?)",
        "web.toml:9: task 'web': nice: must be from -20 to 19 (got 40)",
        "web.toml:10: task 'web': count: must be from 1 to 1000000 (got 0)",
        "web.toml:13: task 'web', phase 3: unknown verb 'slep' (did you mean 'sleep'?)",
        "web.toml:15: task 'web', phase 4.1: run: '5mss': unknown unit 'mss' (did you mean 'ms'?)",
        "web.toml:16: task 'web', phase 4.2: sleep: '5' has no unit; write '5ms' or '5us', say",
        "web.toml:22: task 'b', phase 1: unlock: 'm' is not held here",
    ]


def test_scanner_knows_every_kind_of_value():
    source = Source(
        "x",
        'a = "\\"]}" # ]\n'
        "b = '''\n[not]\n'''\n"
        'c = [1,\n # x\n [2,\n  3], {d = "}", e.f = 4}]\r\n'
        '[t."u.v"]\nw = 1979-05-27T07:32:00Z\n'
        "[[p]]\n[[p]]\n[p.q]\nr = 1\n"
        '[[p.s]]\nz = """a""""\n',
    )
    lines = source.lines
    assert lines["a",] == 1
    assert lines["b",] == 2
    assert lines["c", 0] == 5
    assert lines["c", 1] == 7
    assert lines["c", 1, 1] == 8
    assert lines["c", 2, "d"] == 8
    assert lines["c", 2, "e", "f"] == 8
    assert lines["t", "u.v", "w"] == 10
    assert lines["p", 0] == 11
    assert lines["p", 1] == 12
    assert lines["p", 1, "q", "r"] == 14
    assert lines["p", 1, "s", 0, "z"] == 16


def test_not_toml():
    assert faults("[workload\n")[0].startswith("web.toml:1: not TOML: ")


def test_unreadable_files(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(SpecError, match="not UTF-8 text: byte 5 is 0xff"):
        load_workload(path)
    with pytest.raises(NotFoundError, match="no such file"):
        load_workload(tmp_path / "y.toml")
    with pytest.raises(NotFoundError, match=r"unknown workload 'mixd' \(did you mean 'mixed'\?\)"):
        load_workload("mixd")
    with pytest.raises(UsageError, match="write params as poisson:name=value"):
        load_workload("poisson:rho")


# ---- one mistake each ---------------------------------------------------------

LOCK = '[[lock]]\nname = "m"\n'
PIPE = '[[pipe]]\nname = "p"\n'
RUN = '{run = "1ms"}'

GROUP = '[[group]]\nname = "g"\n'
BAD = {
    "no task": ("", "there is no [[task]]"),
    "unknown table": (task(RUN) + '[[tusk]]\nname = "b"', "unknown table 'tusk' (did you mean 'task'?)"),
    "one bracket": ('[task]\nname = "a"', "write [[task]], with two brackets"),
    "no name": (f"[[task]]\nphases = [{RUN}]", "task number 1: key 'name' is missing"),
    "no phases": ('[[task]]\nname = "a"', "key 'phases' is missing"),
    "empty phases": (task(""), "'phases' must be a list with at least one phase"),
    "bad name": (task(RUN, name="a b"), "must be letters, digits"),
    "same name": (task(RUN) + task(RUN), "there is another task of that name"),
    "bare word": (task('"slep"'), "phase 1: unknown verb 'slep' (did you mean 'sleep'?)"),
    "bare verb": (task('"run"'), "verb 'run' needs a value, as in {run = \"5ms\"}"),
    "number": (task("5"), "a phase is a table such as"),
    "two verbs": (task('{run = "1ms", sleep = "1ms"}'), "one verb per phase (got run and sleep)"),
    "extra key": (task('{run = "1ms", x = 1}'), "unknown key 'x' beside 'run'"),
    "kernel": (task('{work = {kernel = "pj", count = 1}}'), "unknown kernel 'pj' (one of: pi, matmul, spin)"),
    "work": (task('{work = {kernel = "pi"}}'), "work: key 'count' is missing"),
    "work key": (task('{work = {kernel = "pi", cuont = 1}}'), "unknown key 'cuont' (did you mean 'count'?)"),
    "work none": (task('{work = {kernel = "pi", count = 0}}'), "must be more than 0 (got 0)"),
    "period": (task('{period = "0ms"}'), "period: must be more than 0"),
    "loop 0": (task('{loop = 0, do = [{run = "1ms"}]}'), "loop: must be from 1"),
    "loop no do": (task("{loop = 2}"), "loop: key 'do' is missing"),
    "loop empty": (task("{loop = 2, do = []}"), "phase 1: 'do' must be a list"),
    "endless": (task('{loop = "forever", do = [{run = "1ms"}]}'), "it never ends; give [workload] a horizon"),
    "endless, timeless": ('horizon = "1s"\n' + task('{loop = "forever", do = ["yield"]}'), "no time passes in this endless loop"),
    "endless, run 0": ('horizon = "1s"\n' + task('{loop = "forever", do = [{run = "0ms"}]}'), "no time passes in this endless loop"),
    "after endless": ('horizon = "1s"\n' + task(f'{{loop = "forever", do = [{RUN}]}}, {RUN}'), "phase 2: never reached: it follows an endless loop"),
    "after exit": (task(f'"exit", {RUN}'), "phase 2: never reached: it follows exit"),
    "exit in loop": (task(f'{{loop = 2, do = [{RUN}, "exit"]}}'), "exit: not inside a loop"),
    "overflow": (task('{loop = 4_000_000_000, do = [{run = "100000h"}]}'), "is more than"),
    "too deep": (task("{loop = 2, do = [" * 17 + RUN + "]}" * 17), "loops nest 17 deep"),
    "tables": (task("{loop = 2, do = [" + '{run = "exp(1ms)"}, ' * 16 + "]}"), "16 drawn values stand in loops"),
    "unlock": (LOCK + task('{unlock = "m"}'), "unlock: 'm' is not held here"),
    "no unlock": (LOCK + task('{lock = "m"}'), "it ends while it holds lock 'm'"),
    "lock twice": (LOCK + task('{lock = "m"}, {lock = "m"}, {unlock = "m"}'), "it would wait for itself"),
    "lock in loop": (LOCK + task(f'{{loop = 2, do = [{{lock = "m"}}, {RUN}]}}'), "not in the same state"),
    "exit locked": (LOCK + task('{lock = "m"}, "exit"'), "exit: lock 'm' is still held"),
    "unknown pipe": (PIPE + task('{send = "p"}, {send = "pp"}'), "send: unknown pipe 'pp' (did you mean 'p'?)"),
    "no pipes": (task('{send = "p"}'), "(there is no [[pipe]])"),
    "recv": (PIPE + task('{recv = "p"}'), "tasks receive from it, but none sends"),
    "recv more": (PIPE + task('{send = "p"}', name="b") + task('{recv = {pipe = "p", bytes = 2}}'), "2 bytes are to be received, but only 1 sent"),
    "send more": (PIPE + task('{send = {pipe = "p", bytes = 513}}'), "tasks send more than its 512 bytes"),
    "send rest": (PIPE + task('{send = {pipe = "p", bytes = 600}}', name="b") + task('{recv = "p"}'), "the rest does not fit"),
    "tick none": ('tick = "0ms"\n' + task(RUN), "tick: must be from 1us to 10s (got 0ms)"),
    "tick short": ('tick = "999ns"\n' + task(RUN), "tick: must be from 1us to 10s (got 999ns)"),
    "tick long": ('tick = "11s"\n' + task(RUN), "tick: must be from 1us to 10s (got 11s)"),
    "pipe unused": (PIPE + task(RUN), "pipe 'p': no task uses it"),
    "pipe 0": ('[[pipe]]\nname = "p"\ncapacity = 0\n' + task('{send = "p"}'), "pipe 'p': capacity"),
    "barrier": ('[[barrier]]\nname = "b"\nparties = 3\n' + task('{barrier = "b"}', "count = 2"), "3 parties can never meet: 2 tasks use it"),
    "barrier uneven": ('[[barrier]]\nname = "b"\n' + task('{barrier = "b"}') + task('{barrier = "b"}, {barrier = "b"}', name="c"), "the last round never fills"),
    "barrier unused": ('[[barrier]]\nname = "b"\n' + task(RUN), "no task uses it"),
    "same object": (LOCK + '[[pipe]]\nname = "m"\n' + task('{lock = "m"}, {unlock = "m"}'), "there is another object of that name"),
    "spawn unknown": (task('{spawn = "chld"}') + task(RUN, name="child"), "spawn: unknown task 'chld' (did you mean 'child'?)"),
    "spawn arriving": (task('{spawn = "child"}') + task(RUN, name="child"), "task 'child' arrives by itself"),
    "never spawned": (task(RUN) + task(RUN, 'arrival = "spawned"', "child"), "nobody spawns it"),
    "spawns itself": (task(RUN, name="b") + task('{spawn = "a"}', 'arrival = "spawned"'), "it spawns itself"),
    "two parents": (task('{spawn = "c"}') + task('{spawn = "c"}', name="b") + task(RUN, 'arrival = "spawned"', "c"), "already spawned by 'a'"),
    "spawn endless": ('horizon = "1s"\n[[task]]\nname = "a"\nphases = [{loop = "forever", do = [{run = "1ms"}, {spawn = "c"}]}]\n' + task(RUN, 'arrival = "spawned"', "c"), "without end"),
    "spawn count": (task('{loop = 3, do = [{spawn = "c"}]}') + task(RUN, 'arrival = "spawned"\ncount = 2', "c"), "count is 2, but 3 are spawned"),
    "wait": (task('"wait"'), "wait: this task spawns nothing"),
    "wait early": (task('{wait = 1}, {spawn = "c"}') + task(RUN, 'arrival = "spawned"', "c"), "wait: for 1 children, but only 0"),
    "wait more": (task('{loop = 3, do = [{spawn = "c"}]}, {wait = 4}') + task(RUN, 'arrival = "spawned"', "c"), "wait: for 4 children, but only 3"),
    "set": (task("{set = {tikets = 1}}"), "unknown attribute 'tikets' (did you mean 'tickets'?)"),
    "set range": (task("{set = {nice = 20}}"), "nice: must be from -20 to 19 (got 20)"),
    "set both": (task("{set = {nice = 1, weight = 2}}"), "nice and weight contradict"),
    "change": (task('{change = {task = "a"}}'), "change: needs attributes or an affinity"),
    "change whom": (task('{change = {task = "c", weight = 5}}') + task(RUN, name="cc"), "change: unknown task 'c' (did you mean 'cc'?)"),
    "change what": (task("{change = {wieght = 5}}"), "unknown attribute 'wieght' (did you mean 'weight'?)"),
    "change where": (task("{change = {affinity = []}}"), "needs at least one CPU"),
    "change many": (task('{change = {task = "c", weight = 5}}') + task(RUN, "count = 65", "c"), "65 tasks 'c' are too many: at most 64"),
    "both": (task(RUN, "nice = 1\nweight = 2"), "nice and weight contradict"),
    "tickets": (task(RUN, "tickets = 0"), "tickets: must be from 1"),
    "attribute list": (task(RUN, "tickets = [5, 0]"), "tickets: must be from 1 to 4294967295 (got 0)"),
    "burst": (task('{sleep = "1ms"}', 'burst = "run"'), "there is none"),
    "arrival": (task(RUN, 'arrival = "-1ms"'), "arrival: '-1ms' is negative"),
    "arrival word": (task(RUN, 'arrival = "spwned"'), "did you mean 'spawned'?"),
    "arrivals": (task(RUN, 'arrival = ["1ms", "2ms"]'), "arrival: 2 times for 1 tasks"),
    "stream": (task(RUN, 'arrival = {gpa = "1ms"}'), "unknown key 'gpa' (did you mean 'gap'?)"),
    "affinity": (task(RUN, 'affinity = "3-1"'), "the range '3-1' is empty"),
    "affinity max": (task(RUN, "affinity = [1024]"), "must be from 0 to 1023 (got 1024)"),
    "read": (task('{read = {bytes = "1KiB", sync = 1}}'), "sync must be true or false"),
    "read chunk": (task('{read = {bytes = "1KiB", chunk = 0}}'), "chunk must be from 1 B"),
    "too many": (task(RUN, "count = 1_000_000") + task(RUN, "count = 1", name="b"), "1000001 tasks in all"),
    "event": (task(RUN) + '[[event]]\nkind = "ofline"\n', "kind: unknown event 'ofline' (did you mean 'offline'?)"),
    "event key": (task(RUN) + '[[event]]\nkind = "reload"\ncpu = 1\ntime = "1ms"\n', "cpu: 'reload' has none; it has at, time"),
    "event missing": (task(RUN) + '[[event]]\nkind = "take"\ncpu = 1\n', "event number 1: key 'time' is missing"),
    "event cpu 0": (task(RUN) + '[[event]]\nkind = "offline"\ncpu = 0\ntime = "1ms"\n', "the first CPU cannot be offline"),
    "event task": (task(RUN) + '[[event]]\nkind = "thread"\ntask = "b"\n', "task: unknown task 'b'"),
    "event group": (task(RUN) + '[[event]]\nkind = "weight"\ngroup = "g"\nweight = 3\n', "group: unknown group 'g'"),
    "event weight": (task(RUN) + GROUP + '[[event]]\nkind = "weight"\ngroup = "g"\n', "key 'weight' is missing"),
    "event quota": (task(RUN) + GROUP + '[[event]]\nkind = "quota"\ngroup = "g"\nquota = "1us"\n', "quota: at least 1 ms"),
    "events": (task(RUN, "count = 65") + '[[event]]\nkind = "thread"\ntask = "a"\n', "at most 64 events (got 65)"),
    "expected": (task(RUN) + '[[expected]]\npolicy = "rr"\nfinish = {b = "1ms"}', "expected: unknown task 'b'"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_one_mistake_is_one_fault(name):
    text, why = BAD[name]
    found = faults(HEAD + text)
    assert len(found) == 1, found
    assert why in found[0]


def test_a_broken_task_hides_nothing_of_another():
    found = faults(HEAD + task('{slep = "1ms"}') + task('{unlock = "m"}', name="b"))
    assert len(found) == 2


@pytest.mark.parametrize("depth", [100, 2000])
def test_deep_nesting_is_refused_not_a_crash(depth):
    text = "{loop = 2, do = [" * depth + RUN + "]}" * depth
    assert re.search("needs 100 counters|nested too deeply", "\n".join(faults(HEAD + task(text))))


JUNK = [
    "0", "-1", "1e9", "nan", "-inf", "true", '""', '"x"', "[]", "{}", "[{}]", "1979-05-27", '"{"',
    '"{x}"', '"{1/0}"', '"5ms"', '"-5ms"', '"1e300ms"', '"1e-300ms"', "9999999999999999999999",
    '"exp(exp(5ms))"', '{dist = "exp"}', '{dist = "choice", values = [1, "x"]}', '"forever"',
    '"spawned"', '"poisson()"', '"\\u0000"', '{loop = 1, do = "x"}', '"0-99999999999"', '"run"',
    '"pareto(1ms, 0.001)"', '"lognormal(1ms, 999)"', '"normal(1ms, 1h)"', "sleep", "nice", "task",
]  # fmt: skip
SPOT = re.compile(r'(?<== )("[^"\n]*"|[\d_.]+|\[[^\]\n]*\])|(?<=[{, ])(\w+)(?= =)|(?<=\[\[)\w+(?=\]\])')


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(list_workloads()),
    st.lists(st.tuples(st.integers(0), st.sampled_from(JUNK)), min_size=1, max_size=3),
)
@pytest.mark.full
def test_no_damage_to_a_file_does_more_than_raise(info, changes):
    """Whatever stands in the place of a value or key: faults, also of what is drawn, or a workload."""
    text = info.path.read_text()
    for where, junk in changes:
        spots = list(SPOT.finditer(text))
        spot = spots[where % len(spots)]
        text = text[: spot.start()] + junk + text[spot.end() :]
    try:
        workload = parse_workload(text)
        if workload.n_tasks < 3000:
            program = compile_workload(workload, seed=1)
            assert program.n_tasks == workload.n_tasks
    except SpecError as error:
        assert all(fault.message for fault in error.faults)


# ---- params -------------------------------------------------------------------

PARAMS = """
[params]
n = {default = 3, min = 1, max = 9}
length = "20ms"
rho = 0.8
how = {default = "text", choices = ["text", "code"]}
"""
PARAM_TASK = '[[task]]\nname = "a"\ncount = "{n * 2}"\nphases = [{run = "{length / rho}"}]\n'


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"m": 1}, "unknown param 'm' (one of: n, length, rho, how)"),
        ({"lenght": 1}, "did you mean 'length'?"),
        ({"n": 0}, "must be at least 1 (got 0)"),
        ({"n": "10"}, "must be at most 9 (got 10)"),
        ({"n": "5ms"}, "must be a number, like its default 3 (got 5ms)"),
        ({"length": "7"}, "must be a time, like its default 20ms (got 7)"),
        ({"how": "cod"}, "unknown choice 'cod' (did you mean 'code'?)"),
    ],
)
def test_bad_params(params, why):
    assert why in "\n".join(faults(HEAD + PARAMS + PARAM_TASK, params=params))


def test_params_are_used():
    workload = parse_workload(HEAD + PARAMS + PARAM_TASK, name="w.toml", params={"n": "4"})
    assert workload.name == "w:n=4"
    assert workload.tasks[0].count == 8
    assert workload.tasks[0].phases[0].amount.constant == 25_000_000
    same = parse_workload(HEAD + PARAMS + PARAM_TASK, name="w.toml", params={"length": "0.02s"})
    assert same.name == "w"


def test_when_chooses_tasks():
    text = HEAD + PARAMS + task(RUN, 'when = {how = "text"}') + task(RUN, 'when = {how = "code"}', "b")
    assert [t.name for t in parse_workload(text).tasks] == ["a"]
    assert [t.name for t in parse_workload(text, params={"how": "code"}).tasks] == ["b"]
    wrong = HEAD + PARAMS + task(RUN, 'when = {howw = "text"}')
    assert "when: unknown param 'howw' (did you mean 'how'?)" in faults(wrong)[0]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("7 // 2", 3), ("7 / 2", Fraction(7, 2)),
        ("-7 // 2", -4), ("10ms / 2ms", 5), ("2 * 3ms", 6_000_000), ("1KiB * 4", 4096),
        ("2 - 1 - 1", 0), ("(" * 50 + "1" + ")" * 50, 1), ("+".join(["(1)"] * 100), 100),
    ],
)  # fmt: skip
def test_expressions(expression, value):
    assert evaluate(expression, {}).value == value


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("1ms + 1", "a time \\+ a number"), ("1ms * 1ms", "a time \\* a time"), ("1 / 0", "by zero"),
        ("(1", "'\\)' is missing"), ("1 2", "cannot read '2'"), ("", "a value is needed"),
        ("x", "unknown param 'x'"), ("1 ; 2", "cannot read '; 2'"), ("1 / 1ms", "a number / a time"),
        ("(" * 5000 + "1" + ")" * 5000, "more than 50 deep"), ("-" * 5000 + "1", "more than 50 deep"),
    ],
)  # fmt: skip
def test_bad_expressions(expression, why):
    with pytest.raises(UnitError, match=why):
        evaluate(expression, {})


# ---- what is read ---------------------------------------------------------------


def test_forms_of_arrival():
    def arrival(text, more=""):
        return parse_workload(HEAD + task(RUN, f"arrival = {text}\n{more}")).tasks[0].arrival

    assert arrival('"3ms"').times_ns == (3_000_000,)
    assert arrival('"2ticks"').times_ns == (20_000_000,)
    assert arrival('["1ms", 0]', "count = 2").times_ns == (1_000_000, 0)
    assert arrival('"uniform(1ms, 2ms)"').spread.values == (1_000_000, 2_000_000)
    assert arrival('"poisson(5ms)"').gap.kind == "exp"
    stream = arrival('{gap = "5ms", start = "1s"}')
    assert (stream.gap.constant, stream.start_ns) == (5_000_000, 10**9)


def test_spawned_counts_multiply():
    text = (
        HEAD
        + task('{loop = 3, do = [{spawn = ["b", "b"]}]}, "wait"', "count = 2")
        + task('{spawn = "c"}', 'arrival = "spawned"', "b")
        + task(RUN, 'arrival = "spawned"', "c")
    )
    assert [t.count for t in parse_workload(text).tasks] == [2, 12, 12]


def test_defaults():
    workload = parse_workload(HEAD + task(RUN), name="x.toml")
    assert (workload.name, workload.tick_ns, workload.jitter_ns) == ("x", 10**7, 10**7)
    assert (workload.horizon_ns, workload.cpus, workload.cpus_min) == (0, 1, 0)


def test_affinity_says_how_many_cpus_are_needed():
    workload = parse_workload(HEAD + task(RUN, 'affinity = "0-2,6"'))
    assert workload.tasks[0].affinity == (0, 1, 2, 6)
    assert workload.cpus_min == 7


def test_listing_and_reading_need_no_numpy(root):
    code = (
        "import sys; from schedlab.workload import find; find.list_workloads(); "
        "sys.exit('numpy' in sys.modules or 'polars' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(root / "python")})


def test_list_is_complete(root):
    names = [info.name for info in list_workloads()]
    files = [path for path in (root / "workloads").rglob("*.toml")]
    assert len(names) == len(files) == len(set(names))
    assert all(info.title and info.question.endswith("?") for info in list_workloads())


# ---- textbook tables --------------------------------------------------------------


def test_textbook_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("# mine\nName, arrival, burst, priority\nP1, 0, 8, 3\nP2, 1.5ms, 4, 1\n")
    workload = load_workload(path)
    assert [t.name for t in workload.tasks] == ["P1", "P2"]
    assert workload.tasks[1].arrival.times_ns == (1_500_000,)
    assert workload.tasks[0].attributes == {"priority": (3,), "burst": (8_000_000,)}
    assert workload.jitter_ns == 0


def test_bad_textbook_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name,arrival,burst,priority\nP1,-1,8,3\nP1,0,0,x\nP2,0\nP3,0,1,1,9\nP3,0,1\n")
    with pytest.raises(SpecError) as caught:
        load_workload(path)
    text = str(caught.value)
    assert "t.csv:2: task 'P1': arrival: '-1ticks' is negative" in text
    assert "t.csv:3: task 'P1': burst: must be more than 0 (got 0)" in text
    assert "t.csv:3: task 'P1': priority: 'x' is not a number" in text
    assert "t.csv:4: task 'P2': burst: is missing" in text
    assert "t.csv:5: 5 values for 4 columns" in text
    assert "t.csv:6: task 'P3': there is another" in text
    path.write_text("name,arival,burst\n")
    with pytest.raises(SpecError, match=r"unknown column 'arival' \(did you mean 'arrival'\?\)"):
        load_workload(path)


# ---- phases that exist only sometimes ------------------------------------------------


YIELDS = '[params]\nyields = {default = "often", choices = ["often", "never"]}\n'


def test_bad_choices_of_a_param():
    (found,) = faults(HEAD + '[params]\nhow = {default = "a", choices = 5}\n' + task('{run = "1ms"}'))
    assert "choices: must be a list of strings (got 5)" in found


def test_bad_when_of_a_phase():
    found = faults(
        HEAD
        + YIELDS
        + task(
            '{run = "1ms", when = {yield = "often"}}, {run = "1ms", when = {yields = "ofen"}}, '
            '{run = "1ms", when = "often"}, {loop = 2, do = [{run = "1ms", wen = {yields = "never"}}]}'
        )
    )
    assert "task 'a', phase 1: when: unknown param 'yield' (did you mean 'yields'?)" in found[0]
    assert "task 'a', phase 2: when: unknown choice 'ofen' (did you mean 'often'?)" in found[1]
    assert "task 'a', phase 3: when: needs a table of params (got 'often')" in found[2]
    assert "task 'a', phase 4.1: unknown key 'wen' beside 'run'" in found[3]


@pytest.mark.parametrize(("value", "verbs"), [("often", ["run", "loop", "run", "yield"]), ("never", ["run"])])
def test_when_of_a_phase(value, verbs):
    text = (
        HEAD
        + YIELDS
        + task(
            '{loop = 3, when = {yields = "often"}, do = [{run = "1ms"}, '
            '{yield = true, when = {yields = "often"}}]}, {run = "4ms", when = {yields = "never"}}, '
            '{run = "2ms", when = {yields = "often"}}'
        )
    )
    workload = parse_workload(text, params={"yields": value})
    found = [phase.verb for phase, _ in walk(workload.tasks[0].phases)]
    assert sorted(found) == sorted(verbs)
    assert compile_workload(workload, seed=0).work_ns().tolist() == [
        5_000_000 if value == "often" else 4_000_000
    ]


def test_title_and_question_may_be_left_out():
    workload = parse_workload('[[task]]\nname = "a"\nphases = [{run = "1ms"}]\n', name="quick.toml")
    assert (workload.name, workload.title, workload.question) == ("quick", "quick", "")
