# SPDX-License-Identifier: MIT
"""Files of rt-app: what each key becomes, what is refused and why, and the way back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedlab.errors import SpecError, UsageError
from schedlab.program.compiler import compile_workload
from schedlab.program.rtapp_export import export_rtapp
from schedlab.workload.find import load_workload
from schedlab.workload.phases import walk
from schedlab.workload.rtapp import convert_rtapp, load_rtapp, rtapp_as_toml
from schedlab.workload.spec import parse_workload, read_workload
from schedlab.workload.toml_text import write_toml

EXAMPLES = Path("/usr/share/doc/rt-app")


def read(text, **options):
    """A workload from JSON text."""
    source = convert_rtapp(text, name="x.json", **options)
    return read_workload(source, {}, name="x", path=None)


def faults(text):
    with pytest.raises(SpecError) as caught:
        read(text)
    assert caught.value.exit_code == 2
    return str(caught.value).splitlines()


def tasks(text, more='"global" : {"duration" : 1}'):
    return f'{{"tasks" : {{{text}}}, {more}}}'


def one(events, **options):
    """A file with one task; `events` are the inside of its object."""
    return tasks(f'"a" : {{{events}}}', **options)


def verbs(workload, index=0):
    return [phase.verb for phase, _ in walk(workload.tasks[index].phases)]


# ---- what is refused, and why --------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "x.json:1: an rt-app file is an object, not an array"),
        ("{}", "there is no object 'tasks'"),
        ('{"task" : {}}', "unknown key 'task' (did you mean 'tasks'?)"),
        ('{"tasks" : 3}', "'tasks' must be an object (got a whole number)"),
        ('{"tasks" : {}}', "there is no task"),
        (tasks('"a" : 3'), "task 'a': must be an object (got a whole number)"),
        (tasks('"a" : {"run" : 1}, "a" : {"run" : 2}'), "task 'a': there is another task of that name"),
        (tasks('"a b" : {"run" : 1}, "a_b" : {"run" : 2}'), "the same name but for special characters"),
        (one('"rum" : 1'), "task 'a': unknown key 'rum' (did you mean 'run'?)"),
        (one('"runs" : 1'), "unknown key 'runs' (did you mean 'run'?)"),
        (one('"run" : 1, "phase" : {}'), "unknown key 'phase' (did you mean 'phases'?)"),
        (one('"run" : "1"'), "run must be a whole number of microseconds, up to 2147483647 (got a text)"),
        (one('"sleep2" : -1'), "sleep2 must be a whole number of microseconds, up to 2147483647 (got -1)"),
        (one('"run" : 1.5'), "(got a number with a fraction)"),
        (one('"iorun" : true'), "iorun must be a whole number of bytes"),
        (one('"loop" : 2'), "it has no event; rt-app refuses that too"),
        (one('"run" : 1, "loop" : 0'), "loop must be -1, for ever, or 1 and more (got 0)"),
        (one('"run" : 1, "instance" : -1'), "instance must be from 0 to 1000000 (got -1)"),
        (one('"run" : 1, "delay" : "1"'), "delay must be a whole number (got a text)"),
        (one('"run" : 1, "cpus" : []'), "cpus must be a list of CPUs, at least one"),
        (one('"run" : 1, "cpus" : [0, "1"]'), "cpus must be a list of CPUs"),
        (one('"run" : 1, "policy" : "SCHED_FIF"'), "unknown policy 'SCHED_FIF' (did you mean 'SCHED_FIFO'?)"),
        (one('"run" : 1, "priority" : 20'), "priority must be from -20 to 19 (got 20)"),
        (one('"run" : 1, "policy" : "SCHED_RR", "priority" : 0'), "priority must be from 1 to 99 (got 0)"),
        (one('"run" : 1, "dl-runtime" : 5'), "dl-runtime: only for SCHED_DEADLINE, not SCHED_OTHER"),
        (one('"run" : 1, "util_min" : 5'), "utilisation clamps steer frequencies"),
        (one('"run" : 1, "taskgroup" : "/x"'), "a workload has no control groups"),
        (one('"exec" : 1, "run" : 1'), "unknown key 'exec': only old versions of rt-app knew it"),
        (one('"run" : 1, "period" : 5'), "for SCHED_DEADLINE write 'dl-period'; else use a timer"),
        (one('"run" : 1, "phases" : {"p" : {"run" : 1}}'), "event 'run' beside 'phases' is never executed"),
        (one('"phases" : {}'), "phases: there is none"),
        (one('"phases" : {"p" : {}}'), "task 'a', phase 'p': it has no event"),
        (one('"phases" : {"p" : {"run" : 1, "instance" : 2}}'), "phase 'p': unknown key 'instance'"),
        (one('"phases" : {"p" : {"run" : 1, "cpus" : [0]}, "q" : {"run" : 1}}'),
         "cpus: a task keeps its CPUs; its phases name different ones"),
        (one('"phases" : {"p" : {"run" : 1, "policy" : "SCHED_RR"}}'), "a task stays under one policy, here SCHED_OTHER"),
        (one('"lock" : 1'), "lock must be a text (got a whole number)"),
        (one('"lock" : "m", "run" : 1'), "lock 'm' is not in the same state at the end of a round"),
        (one('"wait" : "c"'), "wait must be an object with ref, mutex (got a text)"),
        (one('"wait" : {"ref" : "c"}'), "wait: key 'mutex' is missing"),
        (one('"wait" : {"ref" : "c", "mutx" : "m"}'), "wait: unknown key 'mutx' (did you mean 'mutex'?)"),
        (one('"wait" : {"ref" : "c", "mutex" : "m"}'), "await: lock 'm' is not held here"),
        (one('"suspend" : "a"'), "condition 'a': tasks wait for it, but none signals it"),
        (one('"timer" : {"ref" : "t"}'), "timer: key 'period' is missing"),
        (one('"timer" : {"ref" : "t", "period" : -1}'), "period must be from 0 to 2147483647 us (got -1)"),
        (one('"timer" : {"ref" : "u", "period" : 5, "mode" : "abs"}'), "unknown mode 'abs'"),
        (one('"timer" : {"ref" : "tick", "period" : 5}, "instance" : 2'),
         "timer 'tick': 2 threads advance it together (a), which depends on their order"),
        (one('"barrier" : "b", "loop" : 2, "barrier2" : "b"'), "barrier 'b': 2 parties can never meet"),
        (one('"fork" : "b", "loop" : 1'), "fork: unknown task 'b'"),
        (one('"run" : 1, "fork" : "a", "loop" : 1'), "fork: a task that forks itself has no end"),
        (one('"run" : 1, "fork" : "a"'), "fork: a task that forks itself has no end"),
        (tasks('"a" : {"loop" : 1, "fork" : "b"}, "b" : {"instance" : 0, "run" : 1, "delay" : 5, "loop" : 1}'),
         "fork: task 'b' has a delay, which counts from the start of the run"),
        (one('"run" : 1, "instance" : 0'), "no task ever starts"),
        (one('"run" : 1', more='"global" : {}'), "it loops for ever and the file has no duration"),
        (one('"run" : 1', more='"global" : {"durations" : 1}'), "global: unknown key 'durations' (did you mean 'duration'?)"),
        (one('"run" : 1', more='"global" : {"duration" : "1"}'), "duration must be a whole number (got a text)"),
        (one('"run" : 1', more='"global" : {"duration" : -2}'), "duration must be -1 or seconds"),
        (one('"run" : 1', more='"global" : {"pi_enabled" : true}'), "whether a lock lends its holder the priority"),
        (one('"run" : 1', more='"global" : {"default_policy" : "OTHER"}'), "default_policy: unknown policy 'OTHER'"),
        (one('"run" : 1', more='"global" : {"mem_buffer_size" : 0}'), "mem_buffer_size must be from 1"),
        (one('"run" : 1', more='"global" : {"gnuplot" : 1}'), "gnuplot must be true or false (got a whole number)"),
    ],
)  # fmt: skip
def test_refused_with_the_reason(text, why):
    assert any(why in line for line in faults(text)), faults(text)


def test_every_mistake_is_reported_with_the_line_of_the_json():
    text = """{
        "tasks" : {
            "a" : {
                "rum" : 5,
                "run" : 5,
                "lock" : "m",
                "unlock" : "n"
            }
        },
        "globl" : {}
    }"""
    found = faults(text)
    assert found[0].startswith("x.json:3: task 'a': it loops for ever")
    assert found[1] == "x.json:4: task 'a': unknown key 'rum' (did you mean 'run'?)"
    assert found[2] == "x.json:10: unknown key 'globl' (did you mean 'global'?)"
    # What only a check of the whole workload finds has its line too.
    found = faults(text.replace('"rum" : 5,', '"loop" : 2,').replace('"globl"', '"global"'))
    assert found[0].startswith("x.json:4:") or found[0].startswith("x.json:3:")
    assert any(line.startswith("x.json:7: ") and "unlock: 'n' is not held here" in line for line in found)


# ---- what becomes what -----------------------------------------------------------------


def ops(workload, task=0):
    """(verb, a, b) of every op of a task."""
    program = compile_workload(workload, seed=0)
    row = program.task_rows[task]
    from schedlab.program import layout

    rows = program.ops[row["op_first"] : row["op_first"] + row["nr_ops"]]
    return [(layout.VERBS[op["verb"]], int(op["a"]), int(op["b"])) for op in rows]


def test_events_repeat_with_and_without_numbers():
    found = ops(
        read(one('"loop" : 1, "run" : 1, "run" : 2, "sleep" : 3, "run1" : 4, "run_x" : 5, "yield" : ""'))
    )
    assert found == [
        ("run", 0, 1000), ("run", 0, 2000), ("sleep", 0, 3000), ("run", 0, 4000), ("run", 0, 5000),
        ("yield", 0, 0), ("exit", 0, 0),
    ]  # fmt: skip


def test_loops_of_tasks_and_phases():
    text = '"loop" : %s, "phases" : {"p" : {"loop" : 3, "run" : 1}, "p" : {"sleep" : 2}}'
    assert [op[:1] + op[2:] for op in ops(read(one(text % 2)))] == [
        ("loop", 2), ("loop", 3), ("run", 1000), ("end", 0), ("sleep", 2000), ("end", 0), ("exit", 0),
    ]  # fmt: skip
    assert ops(read(one(text % -1)))[0] == ("loop", 5, 0)
    assert ops(read(one('"run" : 1')))[0] == ("loop", 2, 0)


def test_conditions():
    text = tasks(
        '"a" : {"loop" : 1, "lock" : "m", "wait" : {"ref" : "m", "mutex" : "m"}, '
        '"sync" : {"ref" : "c", "mutex" : "m"}, "unlock" : "m", "suspend", "resume" : "b"},'
        '"b" : {"loop" : 1, "signal" : "m", "broad" : "c", "resume" : "a", "suspend" : "b"}'
    )
    workload = read(text)
    assert [(item.kind, item.name) for item in workload.objects] == [
        ("lock", "m"),
        ("condition", "m-condition"),
        ("condition", "c"),
        ("condition", "a"),
        ("condition", "b"),
    ]
    assert ops(workload, 0) == [
        ("lock", 0, 0), ("await", 1, 1), ("signal", 2, 0), ("await", 2, 1), ("unlock", 0, 0),
        ("await", 3, 0), ("signal", 4, 1), ("exit", 0, 0),
    ]  # fmt: skip
    assert ops(workload, 1) == [
        ("signal", 1, 0), ("signal", 2, 1), ("signal", 3, 1), ("await", 4, 0), ("exit", 0, 0),
    ]  # fmt: skip


def test_timers_keep_their_names_and_modes():
    text = (
        '"loop" : 1, "timer" : {"ref" : "unique", "period" : 10}, "timer" : {"ref" : "tick", "period" : 20}, '
        '"timer" : {"ref" : "unique", "period" : 30, "mode" : "absolute"}, "timer" : {"ref" : "x", "period" : 0}'
    )
    # One use that says absolute makes the timer so, as in rt-app.
    assert ops(read(one(text))) == [
        ("timer", 1, 10_000), ("timer", 0, 20_000), ("timer", 1, 30_000), ("run", 0, 0), ("exit", 0, 0),
    ]  # fmt: skip


def test_barriers_have_a_party_for_each_thread():
    workload = read(
        tasks('"a" : {"loop" : 1, "instance" : 3, "barrier" : "b"}, "c" : {"loop" : 1, "barrier" : "b"}')
    )
    assert [(item.name, item.param) for item in workload.objects] == [("b", 4)]


def test_memory_and_output():
    text = one(
        '"loop" : 1, "mem" : 25000, "iorun" : 3000, "iorun" : 50, "iorun" : 0',
        more='"global" : {"mem_buffer_size" : 1000}',
    )
    assert ops(read(text)) == [
        ("run", 0, 2500), ("write", 1000, 3000), ("write", 50, 50), ("run", 0, 0), ("exit", 0, 0),
    ]  # fmt: skip
    assert "memory_bytes_per_us" in read(text).params


def test_attributes_of_tasks():
    text = tasks(
        '"n" : {"run" : 1, "loop" : 1, "priority" : -5, "cpus" : [2, 0], "delay" : 7, "instance" : 2},'
        '"d" : {"run" : 1, "loop" : 1, "policy" : "SCHED_DEADLINE", "dl-runtime" : 3, "dl-period" : 9},'
        '"i" : {"run" : 1, "loop" : 1, "policy" : "SCHED_IDLE"}'
    )
    workload = read(text)
    nice, deadline, idle = workload.tasks
    assert (nice.attributes, nice.affinity, nice.count) == ({"nice": (-5,)}, (0, 2), 2)
    assert nice.arrival.times_ns == (7000,)
    assert deadline.attributes == {"deadline": (9000,), "burst": (3000,)}
    assert idle.attributes == {"weight": (1,)}
    assert (workload.cpus, workload.cpus_min) == (3, 3)


def test_real_time_priorities_turn_round_and_stay_above_others():
    text = tasks(
        '"f" : {"run" : 1, "policy" : "SCHED_FIFO", "priority" : 99},'
        '"g" : {"run" : 1, "policy" : "SCHED_RR"}, "o" : {"run" : 1},'
        '"p" : {"policy" : "SCHED_RR", "phases" : {"x" : {"run" : 1, "priority" : 4}}}'
    )
    workload = read(text)
    assert [task.attributes["priority"] for task in workload.tasks] == [(0,), (89,), (98,), (89,)]
    assert [op for op in ops(workload, 3) if op[0] == "set"] == [("set", 0, 95)]
    assert "policy SCHED_RR of g, p" in workload.description


def test_forked_tasks_become_a_class_for_each_parent():
    text = tasks(
        '"a" : {"loop" : 2, "fork" : "c", "run" : 1}, "b" : {"loop" : 1, "fork" : "c", "fork" : "d", "run" : 2},'
        '"c" : {"loop" : 1, "run" : 3, "instance" : 2}, "d" : {"loop" : 1, "instance" : 0, "run" : 4},'
        '"never" : {"instance" : 0, "run" : 1, "loop" : 1}'
    )
    workload = read(text)
    found = {task.name: (task.count, task.parent) for task in workload.tasks}
    assert found == {
        "a": (1, ""), "b": (1, ""), "c": (2, ""), "c-of-a": (2, "a"), "c-of-b": (1, "b"), "d-of-b": (1, "b"),
    }  # fmt: skip
    assert "task never: left out" in workload.description
    assert compile_workload(workload, seed=1).n_tasks == 8


def test_what_is_left_out_is_said():
    assert "rt-app 1.0 repeats it for ever" in read(one('"run" : 1, "loop" : 2')).description
    text = one(
        '"run" : 1',
        more='"global" : {"duration" : 1, "calibration" : 20, "logdir" : "./", "ftrace" : false}, '
        '"resources" : {}',
    )
    notes = read(text).description
    assert "calibration: how fast a machine is" in notes
    assert "ftrace" in notes and "logdir" in notes and "resources" in notes


def test_duration_is_a_param(tmp_path):
    path = tmp_path / "my load {1}.json"
    path.write_text(one('"run" : 1', more='"global" : {}'))
    with pytest.raises(SpecError, match="add :duration=5s to its name"):
        load_workload(path)
    assert load_workload(f"{path}:duration=2s").horizon_ns == 2 * 10**9
    with pytest.raises(SpecError, match="duration: 'soon' is not a number with a unit"):
        load_workload(f"{path}:duration=soon")
    assert 'duration = {default = "3000000000ns"' in rtapp_as_toml(path, duration="3s").text
    path.write_text(one('"run" : 1'))
    assert load_workload(path).horizon_ns == 10**9
    assert load_workload(path, params={"duration": "5ms"}).horizon_ns == 5 * 10**6


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(b'{"tasks" : \xff}')
    with pytest.raises(SpecError, match="not UTF-8 text: byte 11 is 0xff"):
        load_rtapp(path)
    with pytest.raises(SpecError, match="No such file|directory"):
        rtapp_as_toml(tmp_path / "absent.json")


# ---- whatever the bytes are ---------------------------------------------------------------

words = st.sampled_from(
    ['"tasks"', '"global"', '"a"', '"run"', '"loop"', '"phases"', '"timer"', '"ref"', '"period"', '"wait"',
     '"mutex"', '"suspend"', '"resume"', '"lock"', '"unlock"', '"barrier"', '"fork"', '"instance"', '"cpus"',
     '"duration"', '"policy"', '"SCHED_FIFO"', '"priority"', '"delay"', '"mem"', "{", "}", "[", "]", ":", ",", "1",
     "-1", "0", "true", "1e9", "2147483648", "/*", "*/", "//", "\n", '"', "\\"]
)  # fmt: skip
good_text = tasks(
    '"a" : {"loop" : 2, "lock" : "m", "run" : 10, "unlock" : "m", "timer" : {"ref" : "unique", "period" : 90}, '
    '"resume" : "b"}, "b" : {"cpus" : [0], "phases" : {"p" : {"loop" : 3, "suspend" : "b"}, "q" : {"mem" : 5}}}'
)


@st.composite
def damaged(draw):
    """A good file with pieces taken out and words put in."""
    text = good_text
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.just("") | words) + text[at + draw(st.integers(0, 12)) :]
    return text


def goes_through(path):
    """Either a workload that compiles, or a SpecError with a place."""
    try:
        compile_workload(load_workload(path), seed=1)
        tomllib.loads(rtapp_as_toml(Path(path)).text)
    except SpecError as error:
        assert str(error).startswith(str(path)) or str(error).startswith("x")


@pytest.mark.full
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=60),
        damaged().map(str.encode),
        st.lists(words, max_size=40).map("".join).map(str.encode),
    )
)
def test_any_bytes_give_a_workload_or_a_spec_error(tmp_path, data):
    path = tmp_path / "x.json"
    path.write_bytes(data)
    goes_through(path)


def test_the_good_text_is_good():
    assert read(good_text).n_tasks == 2


# ---- TOML from it, and back ------------------------------------------------------------------

amounts = st.integers(0, 300)
plain_events = st.one_of(
    amounts.map(lambda n: ("run", n)),
    amounts.map(lambda n: ("sleep", n)),
    st.integers(1, 5000).map(lambda n: ("iorun", n)),
    st.just(("yield", "")),
    st.tuples(st.sampled_from(["unique", "uniqueB"]), st.integers(1, 500)).map(
        lambda t: ("timer", {"ref": t[0], "period": t[1]})
    ),
)


@st.composite
def phase_objects(draw):
    events = draw(st.lists(plain_events, min_size=1, max_size=4))
    if draw(st.booleans()):
        events = [("lock", "m"), *events, ("unlock", "m")]
    start = [("loop", draw(st.integers(1, 3)))]
    if draw(st.booleans()):
        start.append(("priority", draw(st.integers(-20, 19))))
    return start + [(f"{event}{i}" if i else event, value) for i, (event, value) in enumerate(events)]


@st.composite
def files(draw):
    """An rt-app file that ends by itself."""
    found = {}
    for name in draw(st.sampled_from([["a"], ["a", "b"]])):
        task = {"instance": draw(st.integers(1, 3)), "delay": draw(amounts), "loop": draw(st.integers(1, 3))}
        if draw(st.booleans()):
            task["priority"] = draw(st.integers(-20, 19))
        if draw(st.booleans()):
            task["cpus"] = [0]
        phases = draw(st.lists(phase_objects(), min_size=1, max_size=3))
        task["phases"] = {f"p{i}": dict(phase) for i, phase in enumerate(phases)}
        found[name] = task
    return {
        "tasks": found,
        "global": {"duration": -1, "calibration": 20, "log_size": "disable", "lock_pages": False},
    }


def work_of(workload):
    """What each task does, loops multiplied out, names of timers aside."""
    program = compile_workload(workload, seed=0)
    from schedlab.program import layout

    found = []
    for row in program.task_rows:
        stack, rounds = [[]], []
        for op in program.ops[row["op_first"] : row["op_first"] + row["nr_ops"]]:
            verb = layout.VERBS[op["verb"]]
            if verb == "loop":
                stack.append([])
                rounds.append(int(op["b"]))
            elif verb == "end":
                body = stack.pop()
                stack[-1] += body * rounds.pop()
            else:
                a = int(op["a"]) if verb not in ("write",) else 0
                stack[-1].append((verb, a, int(op["b"])))
        found.append((int(row["arrival_ns"]), int(row["weight"]), stack[0]))
    return sorted(found)


@settings(max_examples=60, deadline=None)
@given(files())
def test_toml_and_json_of_a_file_do_the_same(value):
    workload = read(json.dumps(value))
    source = convert_rtapp(json.dumps(value), name="x.json")
    again = parse_workload(write_toml(source.values), name="x.toml")
    assert compile_workload(again, seed=3).ops.tobytes() == compile_workload(workload, seed=3).ops.tobytes()
    exported = read(export_rtapp(workload).text)
    assert work_of(exported) == work_of(workload)


def test_pinned_program():
    """A changed hash means that files of rt-app now mean something else: say why."""
    hashed = compile_workload(read(good_text), seed=1).program_hash
    assert hashed == "6e3f8868a8e06d438cb990a4de86a9481796d63add872ee64302a53e4a232f68"


# ---- export ------------------------------------------------------------------------------------

HEAD = '[workload]\ntitle = "T"\nquestion = "Q?"\n'


def export_of(phases, more="", head="", **options):
    text = f'{HEAD}{head}\n[[task]]\nname = "a"\n{more}\nphases = [{phases}]\n'
    return export_rtapp(parse_workload(text, name="w.toml"), **options)


def exported(phases, more="", head="", **options):
    return json.loads(export_of(phases, more, head, **options).text)["tasks"]


@pytest.mark.parametrize(
    ("phases", "why"),
    [
        ('{run = "1ms"}, {read = "1KiB"}', "task 'a': read: rt-app only writes"),
        ('{write = {bytes = "1KiB", sync = true}}', "rt-app's iorun cannot wait for a device"),
        ('{period = "5ms"}', "period: rt-app has only timers"),
        (
            '{loop = 2, do = [{loop = 2, do = [{loop = 12000, do = [{run = "1ms"}]}]}]}',
            "more than 10000 events",
        ),
        ('{loop = 20000, do = [{run = "exp(1ms)"}]}', "more than 10000 events"),
        ('{run = "2h"}', "7200000000 us are more than rt-app's 2147483647"),
    ],
)
def test_what_rtapp_cannot_do_is_refused(phases, why):
    with pytest.raises(SpecError) as caught:
        export_of(phases)
    assert why in str(caught.value)


def test_export_refuses_other_mistakes():
    with pytest.raises(UsageError, match=r"unknown policy 'FIFO' \(one of: SCHED_OTHER"):
        export_of('{run = "1ms"}', policy="FIFO")
    with pytest.raises(SpecError, match="it has no priority, which SCHED_FIFO needs"):
        export_of('{run = "1ms"}', policy="SCHED_FIFO")
    with pytest.raises(SpecError, match="real-time levels are 0, the highest, to 98"):
        export_of('{run = "1ms"}', more="priority = 99", policy="SCHED_RR")
    with pytest.raises(SpecError, match="5000 tasks: rt-app starts a thread for each"):
        export_of('{run = "1ms"}', more="count = 5000")
    with pytest.raises(SpecError, match="barrier 'b': 2 parties, but rt-app would count 4"):
        export_of('{barrier = "b"}', more="count = 4", head='[[barrier]]\nname = "b"\nparties = 2')
    with pytest.raises(SpecError, match=r"spawn: rt-app 1.0 starts all tasks at once[\s\S]*wait: rt-app 1.0"):
        export_rtapp(load_workload("report-1/short"))


def test_export_writes_out_what_differs_from_round_to_round():
    found = exported('{loop = 3, do = [{run = "uniform(1us, 900us)"}, {sleep = "5us"}]}')["a"]["phases"][
        "phase0"
    ]
    runs = [value for key, value in found.items() if key.startswith("run")]
    assert len(runs) == 3 and len(set(runs)) > 1
    assert [key for key in found if key.startswith("sleep")] == ["sleep1", "sleep3", "sleep5"]


def test_export_fits_two_levels_of_loops_and_changes_of_priority():
    found = exported(
        '{loop = 5, do = [{run = "1ms"}, {set = {nice = 3}}, {loop = 2, do = [{sleep = "1ms"}]}, '
        '{loop = 2, do = [{loop = 2, do = [{run = "2ms"}]}]}]}'
    )["a"]
    assert found["loop"] == 5
    assert list(found["phases"].values()) == [
        {"run0": 1000},
        {"loop": 2, "priority": 3, "sleep0": 1000},
        {"loop": 2, "run0": 2000, "run1": 2000},
    ]


def test_export_tells_tasks_apart_that_differ():
    found = exported(
        '{run = "1ms"}', more='count = 4\narrival = ["0ms", "2ms", "0ms", "2ms"]\nnice = [0, 1, 0, 5]'
    )
    assert {
        name: (task.get("instance", 1), task.get("delay", 0), task["priority"])
        for name, task in found.items()
    } == {"a": (2, 0, 0), "a-2": (1, 2000, 1), "a-3": (1, 2000, 5)}


def test_export_says_what_it_leaves_out():
    made = export_of(
        '{run = "1500ns"}, {work = {kernel = "spin", count = 1000}}', more="tickets = 5\nweight = 300"
    )
    assert set(made.notes) == {
        "tickets of a: left out",
        "weight 300 of a: nice -5, 305",
        "run of a: rounded to microseconds",
        "work of a: as CPU time, 4350 ps a unit",
        "work of a: rounded to microseconds",
    }


# ---- the real rt-app ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rtapp(tmp_path_factory):
    """Function that runs the real rt-app on JSON text; returns its complaints."""
    binary = shutil.which("rt-app")
    if binary is None:
        pytest.skip("there is no rt-app: apt-get install rt-app")
    folder = tmp_path_factory.mktemp("rtapp")

    def run(text):
        path = folder / "x.json"
        path.write_text(text)
        done = subprocess.run(
            [binary, path], cwd=folder, capture_output=True, text=True, timeout=60, check=False
        )
        said = (done.stdout + done.stderr).splitlines()
        complaints = [line for line in said if "<crit>" in line or "<error>" in line]
        return complaints + ([f"exit code {done.returncode}"] if done.returncode else [])

    return run


def quick(text):
    """The same, without seconds of calibration and for a second at most."""
    return text.replace('"calibration" : "CPU0"', '"calibration" : 20')


@pytest.mark.full
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files())
def test_rtapp_accepts_what_is_exported(rtapp, value):
    exported = quick(export_rtapp(read(json.dumps(value))).text)
    assert rtapp(json.dumps(value)) == []
    assert rtapp(exported) == []


@pytest.mark.full
def test_rtapp_accepts_an_export_of_everything(rtapp):
    text = tasks(
        '"a" : {"loop" : 5, "lock" : "m", "run" : 10, "signal" : "c", "unlock" : "m", "mem" : 100, "iorun" : 100, '
        '"timer" : {"ref" : "unique", "period" : 900, "mode" : "absolute"}, "resume" : "b", "broad" : "c"},'
        '"b" : {"priority" : 5, "phases" : {"p" : {"loop" : 3, "suspend" : "b"}, "q" : {"sleep" : 5, "priority" : 9}}},'
        '"c" : {"lock" : "m", "wait" : {"ref" : "c", "mutex" : "m"}, "unlock" : "m", "yield" : ""},'
        '"d" : {"instance" : 2, "loop" : 3, "barrier" : "d", "runtime" : 50}'
    )
    assert rtapp(quick(export_rtapp(read(text)).text)) == []


@pytest.mark.full
@pytest.mark.parametrize("name", ["textbook/rr", "textbook/srtf"])
def test_rtapp_accepts_our_workloads(rtapp, name):
    assert rtapp(quick(export_rtapp(load_workload(name)).text)) == []


@pytest.mark.full
@pytest.mark.parametrize("policy", ["SCHED_FIFO", "SCHED_RR"])
def test_rtapp_accepts_real_time(rtapp, policy):
    import os

    if os.geteuid():
        pytest.skip("real-time policies need root")
    made = export_of(
        '{run = "1ms"}, {set = {priority = 3}}, {sleep = "1ms"}', more="priority = 50", policy=policy
    )
    assert rtapp(quick(made.text)) == []


@pytest.mark.full
def test_rtapp_repeats_as_often_as_we_do(rtapp, tmp_path):
    """Its log has a line for each round of a phase; ours a run in each."""
    text = tasks(
        '"a" : {"instance" : 2, "loop" : 2, "phases" : {"p" : {"loop" : 3, "run" : 50}, "q" : {"run1" : 60}}},'
        '"b" : {"loop" : 4, "phases" : {"p" : {"run" : 70, "timer" : {"ref" : "unique", "period" : 100}}}}',
        more=f'"global" : {{"duration" : -1, "calibration" : 20, "lock_pages" : false, "logdir" : "{tmp_path}"}}',
    )
    assert rtapp(text) == []
    logs = {path.name: path.read_text().splitlines() for path in tmp_path.glob("*.log")}
    found = sorted(sum(not line.startswith("#") for line in lines) for lines in logs.values())
    ours = sorted(sum(verb == "run" for verb, _, _ in steps) for _, _, steps in work_of(read(text)))
    assert found == ours == [4, 8, 8]


EXAMPLE_REASONS = {
    "taskset.json": "unknown key 'exec'",
    "example4.json": "the file has no duration",
    "example8.json": "its phases name different ones",
    "global.json": "there is no object 'tasks'",
    "resources.json": "there is no object 'tasks'",
    **{f"thread{i}.json": "unknown key 'exec'" for i in range(4)},
}


@pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="rt-app's examples are not installed: apt-get install rt-app"
)
def test_examples_of_rtapp_are_read_or_refused_for_a_reason():
    seen = 0
    for path in sorted(EXAMPLES.rglob("*.json")):
        seen += 1
        try:
            workload = load_workload(path)
        except SpecError as error:
            assert EXAMPLE_REASONS[path.name] in str(error), path
            continue
        assert path.name not in EXAMPLE_REASONS, path
        made = export_rtapp(workload)
        first, again = work_of_finite(workload), work_of_finite(read(made.text))
        assert first == again, path
    assert seen >= 20


def work_of_finite(workload):
    """Verbs and amounts of all tasks, endless loops as one round; whole microseconds."""
    program = compile_workload(workload, seed=0)
    from schedlab.program import layout

    found = [(layout.VERBS[op["verb"]], (int(op["b"]) + 500) // 1000) for op in program.ops]
    return [step for step in found if step[0] not in ("loop", "end")]


# ---- the command line -----------------------------------------------------------------------------


def schedlab(*words):
    return subprocess.run(
        [sys.executable, "-m", "schedlab", *map(str, words)], capture_output=True, text=True, check=False
    )


@pytest.mark.full
def test_import_and_export_on_the_command_line(tmp_path):
    path, toml, back = tmp_path / "load.json", tmp_path / "made" / "load.toml", tmp_path / "back.json"
    path.write_text(one('"loop" : 2, "phases" : {"p" : {"run" : 5, "runtime" : 7}}'))
    done = schedlab("import", "rt-app", path, "--out", toml)
    assert (done.returncode, done.stdout) == (0, f"wrote {toml}\n")
    assert done.stderr.startswith("note: runtime: counted in CPU time")
    done = schedlab("export", "rt-app", toml, "--out", back)
    assert (done.returncode, done.stdout) == (0, f"wrote {back}\n")
    assert work_of(load_workload(back)) == work_of(load_workload(path))
    table = schedlab("export", "csv", "textbook/rr")
    assert table.stdout.splitlines()[1] == "A,0,5"
    (tmp_path / "t.csv").write_text(table.stdout)
    made = schedlab("import", "csv", tmp_path / "t.csv")
    assert 'phases = [\n    {run = "5ms"},' in made.stdout
    for words, why in [
        (("import", "rtapp", path), "unknown format 'rtapp' (did you mean 'rt-app'?)"),
        (("export", "csv", "mixed"), "task 'editor': a line of a table is one run"),
        (("export", "csv", "textbook/rr", "--out", tmp_path), "Is a directory"),
        (("import", "csv", tmp_path / "t.csv", "--duration", "1s"), "a CSV table ends when its tasks do"),
    ]:
        done = schedlab(*words)
        assert (done.returncode, done.stdout) == (2, "")
        assert why in done.stderr
