# SPDX-License-Identifier: MIT
"""Programs: the bytes agree with program.h, with the C check, and with a naive reader."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schedlab.calibration import WORK_KERNELS, Calibration
from schedlab.errors import ProgramError, SpecError, UsageError
from schedlab.program import layout
from schedlab.program.compiler import compile_workload, read_program
from schedlab.program.rtapp_export import export_rtapp
from schedlab.workload.checks import SLOTS_MAX, TASKS_MAX
from schedlab.workload.spec import parse_workload

HEAD = '[workload]\ntitle = "T"\nquestion = "Q?"\n'


def compiled(text, seed=0, head=HEAD):
    return compile_workload(parse_workload(head + text, name="w.toml"), seed=seed)


def test_refuses_bad_seeds():
    workload = parse_workload(HEAD + '[[task]]\nname = "a"\nphases = [{run = "1ms"}]')
    for seed in (-1, 2**64):
        with pytest.raises(UsageError, match="seed must be from 0"):
            compile_workload(workload, seed=seed)


# ---- the format -----------------------------------------------------------------


def test_layout_is_that_of_the_header(root, need, tmp_path):
    """Compile a program that prints every offset and number of program.h."""
    structs = {
        "sl_program_header": layout.HEADER_DTYPE,
        "sl_program_task": layout.TASK_DTYPE,
        "sl_program_op": layout.OP_DTYPE,
        "sl_program_object": layout.OBJECT_DTYPE,
    }
    lines, expected = [], []
    for name, dtype in structs.items():
        for field in dtype.names:
            lines.append(
                f'printf("%zu %zu\\n", offsetof(struct {name}, {field}), '
                f"sizeof(((struct {name} *)0)->{field}));"
            )
            kind, offset = dtype.fields[field]
            expected.append(f"{offset} {kind.itemsize}")
    numbers = {
        **{f"SL_VERB_{verb.upper()}": i for i, verb in enumerate(layout.VERBS)},
        **{f"SL_WORK_{kernel.upper()}": i for i, kernel in enumerate(WORK_KERNELS)},
        **{f"SL_OBJECT_{kind.upper()}": i for kind, i in layout.OBJECT_NUMBER.items()},
        "SL_NR_VERBS": len(layout.VERBS),
        "SL_NR_WORKS": len(WORK_KERNELS),
        "SL_OP_TABLE": layout.OP_TABLE,
        "SL_OP_SYNC": layout.OP_SYNC,
        "SL_OP_DIRECT": layout.OP_DIRECT,
        "SL_PROGRAM_VERSION_MIN": layout.VERSION,
        "SL_PROGRAM_VERSION": layout.VERSION_WITH_CPUSETS,
        "SL_GROUP_CPUS": layout.GROUP_CPUS,
        "SL_NR_GROUP_VALUES": layout.GROUP_CPUS + 1,
        "SL_PROGRAM_SLOTS_MAX": SLOTS_MAX,
        "SL_PROGRAM_TASKS_MAX": TASKS_MAX,
        "SL_PROGRAM_NONE": layout.NONE,
    }
    for name, number in numbers.items():
        lines.append(f'printf("%llu\\n", (unsigned long long){name});')
        expected.append(str(number))
    source = tmp_path / "layout.c"
    source.write_text(
        "#include <stdio.h>\n#include <schedlab/program.h>\nint main(void) {\n"
        + "\n".join(lines)
        + "\nreturn 0; }\n"
    )
    binary = tmp_path / "layout"
    subprocess.run([need("cc"), f"-I{root / 'include'}", "-o", binary, source], check=True)
    found = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    assert found.splitlines() == expected


def test_attribute_numbers_are_those_of_the_header(root):
    from schedlab.workload.phases import ATTRIBUTES

    text = (root / "include" / "scx" / "attrs.h").read_text()
    found = re.findall(r"TASK_ATTR_(\w+),", text)
    assert [name.lower() for name in found] == [name for name in ATTRIBUTES if name != "nice"]
    assert [ATTRIBUTES[name.lower()][0] for name in found] == list(range(len(found)))


def test_weights_of_nice_are_rescaled_as_linux_does():
    assert [layout.weight_of_nice(nice) for nice in (-20, -1, 0, 1, 5, 19)] == [8668, 125, 100, 80, 33, 1]


@pytest.fixture(scope="module")
def c_check(root, need, tmp_path_factory):
    """Function that returns what the check of player/ says of some bytes."""
    folder = tmp_path_factory.mktemp("check")
    binary = folder / "player_tool"
    sources = [root / "player" / name for name in ("program.c", "player.c", "work.c")]
    subprocess.run(
        [need("cc"), "-std=gnu11", f"-I{root / 'include'}", f"-I{root / 'player'}", "-o", binary,
         root / "tests" / "player" / "player_tool.c", *sources],
        check=True,
    )  # fmt: skip

    def check(data):
        path = folder / "program"
        path.write_bytes(data)
        done = subprocess.run([binary, "check", path], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return check


# ---- random workloads against a naive reader ----------------------------------------

durations = st.sampled_from(['"0ms"', '"3ms"', '"7us"', '"exp(2ms)"', '"uniform(1ms, 4ms)"'])
work = st.sampled_from(['"normal(900, 300)"', "1", "12345"]).flatmap(
    lambda count: st.sampled_from(WORK_KERNELS).map(
        lambda kernel: f'{{work = {{kernel = "{kernel}", count = {count}}}}}'
    )
)
leaf = st.one_of(
    durations.map(lambda text: f"{{run = {text}}}"),
    durations.map(lambda text: f"{{sleep = {text}}}"),
    work,
    st.just('"yield"'),
    st.just('{lock = "m"}, {run = "1us"}, {unlock = "m"}'),
    st.just('{write = {bytes = "exp(4KiB)", chunk = "1KiB", sync = true}}'),
    st.just("{set = {tickets = 5, priority = -3}}"),
    st.just('{period = "5ms"}'),
)


def loops(inner):
    return st.tuples(st.integers(1, 4), st.lists(inner, min_size=1, max_size=3)).map(
        lambda pair: f"{{loop = {pair[0]}, do = [{', '.join(pair[1])}]}}"
    )


bodies = st.lists(st.recursive(leaf, loops, max_leaves=5), min_size=1, max_size=4).map(", ".join)
heads = st.sampled_from(
    ["", "nice = [-3, 4]", 'arrival = "poisson(3ms)"', 'arrival = "uniform(0ms, 1s)"',
     "affinity = [0, 65]", 'cap = "50%"\ndeadline = "20ms"', 'arrival = ["1ms", "2ms", 0]']
)  # fmt: skip


@st.composite
def workloads(draw):
    text = '[[lock]]\nname = "m"\n'
    for name in draw(st.sampled_from(["a", "ab"])):
        count = 3
        spawns = draw(st.sampled_from(["", f', {{loop = 2, do = [{{spawn = "{name}c"}}]}}, "wait"']))
        text += f'[[task]]\nname = "{name}"\ncount = {count}\n{draw(heads)}\n'
        text += f"phases = [{draw(bodies)}{spawns}]\n"
        if spawns:
            text += f'[[task]]\nname = "{name}c"\narrival = "spawned"\nphases = [{draw(bodies)}]\n'
    return text


def naive_work_ns(program, task, calibration):
    """Execute the ops one after the other, with a counter for every slot."""
    row = program.task_rows[task]
    first = int(row["op_first"])
    ops = [tuple(int(x) for x in op) for op in program.ops[first : first + int(row["nr_ops"])]]
    slots, total, pc = [0] * SLOTS_MAX, 0, 0
    while layout.VERBS[ops[pc][0]] != "exit":
        verb, flags, slot, a, b = ops[pc]
        name = layout.VERBS[verb]
        if flags & layout.OP_TABLE:
            start, number = b >> 32, b & 0xFFFFFFFF
            b = int(program.values[start + slots[slot] % number])
            slots[slot] += 1
        if name == "run":
            total += b
        elif name == "work":
            total += b * (calibration.pi_ps, calibration.matmul_ps, calibration.spin_ps)[a] // 1000
        elif name == "loop":
            slots[slot] = b
        elif name == "end":
            slots[slot] -= 1
            pc = a if slots[slot] else pc
        pc += 1
    return total


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(workloads(), st.integers(0, 2**64 - 1))
def test_random_workloads(c_check, text, seed):
    try:
        program = compiled(text, seed)
    except SpecError as error:
        assert "drawn values stand in loops" in str(error)  # too many counters: rightly refused
        return
    assert c_check(program.data) == "ok"
    assert compiled(text, seed).data == program.data
    assert read_program(program.data).program_hash == program.program_hash
    calibration = Calibration(pi_ps=777, matmul_ps=1001, spin_ps=3)
    found = program.work_ns(calibration)
    for task in range(program.n_tasks):
        assert found[task] == naive_work_ns(program, task, calibration)
    assert program.describe().count("\n") > 3


# ---- what the bytes say ----------------------------------------------------------------


def test_everything_of_a_task_is_in_its_row():
    program = compiled(
        '[[task]]\nname = "a"\ncount = 3\narrival = "5ms"\npriority = [1, -2]\ntickets = 7\n'
        'credits = -9\ncap = "50%"\ngroup = 4\ndeadline = "6ms"\nburst = "run"\nweight = 250\n'
        'affinity = [0, 65]\nphases = [{run = "exp(1ms)"}]\n'
        '[[task]]\nname = "b"\nnice = 5\nphases = [{sleep = "1ms"}]\n'
    )
    tasks = program.tasks
    assert tasks["pid"].tolist() == [1, 2, 3, 4]
    assert tasks["name"].tolist() == ["a", "a", "a", "b"]
    assert tasks["class_idx"].tolist() == [0, 0, 0, 1]
    assert tasks["arrival_ns"].tolist() == [5_000_000] * 3 + [0]
    assert tasks["priority"].tolist() == [1, -2, 1, 0]
    assert tasks["tickets"].tolist() == [7, 7, 7, 0]
    assert tasks["credits"].tolist() == [-9, -9, -9, 0]
    assert tasks["cap_percent"].tolist() == [50, 50, 50, 0]
    assert tasks["group"].tolist() == [4, 4, 4, 0]
    assert tasks["deadline_ns"].tolist() == [6_000_000] * 3 + [0]
    assert tasks["weight"].tolist() == [250, 250, 250, 33]
    assert tasks["nice"].tolist() == [0, 0, 0, 5]
    assert tasks["attr_given"].tolist() == [0xFF] * 3 + [1 << 7]
    assert tasks["burst_ns"].tolist() == [*program.work_ns()[:3].tolist(), 0]
    assert len(set(tasks["burst_ns"].tolist())) == 4
    row = program.task_rows[0]
    mask = program.values[row["affinity"] : row["affinity"] + row["affinity_words"]]
    assert mask.tolist() == [1, 2]
    assert program.header["nr_cpus_min"] == 66
    assert program.task_rows[3]["affinity"] == layout.NONE


def test_the_hash_is_that_of_the_bytes(tmp_path):
    program = compiled('[[task]]\nname = "a"\nphases = [{run = "1ms"}]\n')
    assert program.program_hash == hashlib.sha256(program.data).hexdigest()
    program.save(tmp_path / "p")
    assert read_program(tmp_path / "p").data == program.data


def test_jitter_moves_starts_and_nothing_else():
    text = '[[task]]\nname = "a"\ncount = 50\narrival = "1s"\nphases = [{run = "exp(1ms)"}]\n'
    still, moved = compiled(text, 0), compiled(text, 3)
    assert set(still.tasks["arrival_ns"].tolist()) == {10**9}
    offsets = moved.tasks["arrival_ns"].astype(int) - 10**9
    assert offsets.min() >= 0 and offsets.max() < 10_000_000
    assert len(set(offsets.tolist())) == 50
    assert (still.work_ns() != moved.work_ns()).any()  # exp is drawn anew ...
    fixed = text.replace("exp(1ms)", "1ms")
    assert (compiled(fixed, 0).work_ns() == compiled(fixed, 3).work_ns()).all()  # ... work is not
    none = HEAD + 'jitter = "0ms"\n'
    assert set(compiled(text, 3, none).tasks["arrival_ns"].tolist()) == {10**9}


def test_another_task_changes_no_draw():
    a = '[[task]]\nname = "a"\ncount = 5\narrival = "poisson(1ms)"\nphases = [{run = "exp(1ms)"}]\n'
    b = a.replace('"a"', '"b"')
    alone, after = compiled(a, 9), compiled(b + a, 9)
    assert (alone.work_ns() == after.work_ns()[5:]).all()
    assert (alone.tasks["arrival_ns"] == after.tasks["arrival_ns"][5:]).all()
    assert (after.work_ns()[:5] != after.work_ns()[5:]).all()


def test_loops_draw_once_per_round():
    program = compiled(
        '[[task]]\nname = "a"\ncount = 2\nphases = [{loop = 3, do = [{loop = 5, do = ['
        '{run = "exp(1ms)"}]}]}]\n'
    )
    assert len(program.values) == 2 * 15
    assert len(set(program.values.tolist())) == 30
    assert program.work_ns().tolist() == [int(program.values[:15].sum()), int(program.values[15:].sum())]


def test_endless_loops_have_tables_that_wrap():
    head = HEAD + 'horizon = "1s"\n'
    program = compiled(
        '[[task]]\nname = "a"\nphases = [{loop = "forever", do = [{run = "exp(1ms)"}]}]\n', 0, head
    )
    assert program.horizon_ns == 10**9
    assert len(program.values) == 4096
    assert program.work_ns().tolist() == [-1]


def test_children_stand_behind_their_parents_by_kind():
    program = compiled(
        '[[task]]\nname = "late"\narrival = "spawned"\nphases = ["exit"]\n'
        '[[task]]\nname = "p"\ncount = 2\n'
        'phases = [{spawn = ["early", "late", "early"]}, "wait"]\n'
        '[[task]]\nname = "early"\narrival = "spawned"\nphases = ["exit"]\n'
    )
    assert program.tasks["name"].tolist() == ["p", "p"] + ["early"] * 4 + ["late"] * 2
    assert program.tasks["class_idx"].tolist() == [1, 1, 2, 2, 2, 2, 0, 0]
    assert program.tasks["parent_pid"].tolist() == [0, 0, 1, 1, 2, 2, 1, 2]
    assert program.tasks["is_spawned"].tolist() == [False] * 2 + [True] * 6


def test_sums_beyond_64_bits_are_cut_not_wrapped():
    program = compiled(
        '[[task]]\nname = "a"\nphases = [{loop = 1_000_000, do = ['
        '{work = {kernel = "pi", count = 4_000_000_000_000_000}}]}]\n'
    )
    assert program.work_ns().tolist() == [2**63 - 1]


def test_arrivals_that_overflow_are_refused():
    with pytest.raises(SpecError, match="task 'a': arrivals reach beyond"):
        compiled('[[task]]\nname = "a"\ncount = 9\narrival = {gap = "300000h"}\nphases = [{run = "1ms"}]\n')


# ---- damage ----------------------------------------------------------------------------

SMALL = (
    '[[lock]]\nname = "m"\n[[task]]\nname = "a"\ncount = 2\nphases = ['
    '{loop = 3, do = [{run = "exp(1ms)"}, {lock = "m"}, {unlock = "m"}]}]\n'
)


def test_damaged_programs_name_the_offset(tmp_path):
    good = compiled(SMALL).data
    ops_off = struct.unpack_from("<Q", good, 72)[0]

    def broken(offset, value):
        return good[:offset] + value + good[offset + len(value) :]

    cases = [
        (good[:50], "offset 50: cut short"),
        (b"x" + good[1:], "offset 0: not a workload program"),
        (broken(8, b"\4"), "offset 8: version 4; this schedlab reads 1 to 3"),
        (broken(12, b"\0"), "offset 12: header of 0 bytes"),
        (good[:-1], f"should have {len(good)} bytes"),
        (broken(40, b"\xff\xff"), "offset 112: the 65535 tasks end at byte"),
        (broken(112 + 24, b"\xff\xff"), "offset 112: task 0: name is 65535"),
        (broken(112 + 36, b"\xff\xff"), "offset 112: task 0: its ops leave the table"),
        (broken(ops_off, b"\x63"), f"offset {ops_off}: op 0: verb is 99"),
        (broken(ops_off + 16 + 12, b"\xff\xff"), f"offset {ops_off + 16}: op 1: its values leave"),
        (good[:-1] + b"x", "the last string has no end"),
    ]
    for data, why in cases:
        with pytest.raises(ProgramError, match=re.escape(why)):
            read_program(data)
    path = tmp_path / "p"
    path.write_bytes(good[:50])
    with pytest.raises(ProgramError, match=re.escape(f"{path}: offset 50")):
        read_program(path)
    with pytest.raises(ProgramError, match="No such file"):
        read_program(tmp_path / "q")


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=8))
def test_no_damage_does_more_than_raise(offset, value):
    good = compiled(SMALL).data
    offset %= len(good)
    data = (good[:offset] + value + good[offset + len(value) :])[: len(good)]
    try:
        program = read_program(data)
    except ProgramError:
        return
    assert isinstance(program.describe(), str)
    assert len(program.tasks["pid"]) == program.n_tasks


@pytest.mark.full
def test_a_hundred_thousand_tasks():
    """Size, not speed: `selfbench` times it."""
    program = compiled(
        '[[task]]\nname = "a"\ncount = 100_000\narrival = "poisson(1ms)"\n'
        'phases = [{run = "exp(1ms)"}, {sleep = "uniform(1ms, 2ms)"}]\n',
        1,
        HEAD + 'jitter = "0ms"\n',
    )
    assert program.n_tasks == 100_000
    assert (np.diff(program.tasks["arrival_ns"].astype(np.int64)) >= 0).all()
    assert abs(program.work_ns().mean() / 1e6 - 1) < 0.02


def test_work_of_equal_shape_may_be_of_another_kernel():
    """Two tasks that differ only in their kernel are not summed as one."""
    workload = parse_workload(
        '[workload]\ntitle = "t"\nquestion = "q"\njitter = "0ms"\n'
        + "".join(
            f'[[task]]\nname = "{k}"\nphases = [{{work = {{kernel = "{k}", count = 1000}}}}]\n'
            for k in ("pi", "spin")
        )
    )
    found = compile_workload(workload, seed=0).work_ns(Calibration(pi_ps=9000, matmul_ps=1, spin_ps=500))
    assert found.tolist() == [9000, 500]


GROUPS = """
[workload]
title = "Groups"
question = "Who is where?"

[[group]]
name = "outer"
weight = 300

[[group]]
name = "inner"
parent = "outer"
quota = "20ms"
period = "50ms"

[[lock]]
name = "l"

[[task]]
name = "a"
group = "inner"
phases = [{lock = "l"}, {run = "1ms"}, {unlock = "l"}]

[[task]]
name = "b"
group = 7
phases = [{run = "1ms"}]
"""


def test_groups_are_in_a_version_of_their_own():
    """So that a reader without them refuses; a program without them keeps its bytes."""
    program = compile_workload(parse_workload(GROUPS, name="groups.toml"), seed=1)
    assert (program.header["version"], program.has_groups) == (2, True)
    assert program.task_rows["group_object"].tolist() == [3, 0]
    assert program.tasks["group"].tolist() == [0, 7]
    lines = program.describe().splitlines()
    assert "group outer weight 300" in lines
    assert "group inner in outer, weight 100, 20000 us of each 50000 us" in lines
    without = GROUPS[: GROUPS.index("[[group]]")] + GROUPS[GROUPS.index("[[lock]]") :].replace('"inner"', "1")
    program = compile_workload(parse_workload(without, name="groups.toml"), seed=1)
    assert (program.header["version"], program.has_groups) == (1, False)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'parent = "outer"',
            'parent = "outer"\ncpus = "3-1"',
            "group 'inner': cpus: the range '3-1' is empty",
        ),
        ('parent = "outer"', 'parent = "outer"\ncpus = []', "group 'inner': cpus: needs at least one CPU"),
        ('parent = "outer"', 'parent = "outer"\ncpus = "0,x"', "group 'inner': cpus: "),
        (
            "[[lock]]",
            '[[group]]\nname = "half"\ncpus = "0,2"\n[[group]]\nname = "x"\nparent = "half"\ncpus = [1, 4]\n[[lock]]',
            "group 'x': cpus: 'half', in which it is, has none of them, only 0, 2",
        ),
        ('parent = "outer"', 'parent = "later"', "parent: no group 'later' comes before this one"),
        ('name = "inner"\nparent', 'name = "outer"\nparent', "there is another group of that name"),
        ('group = "inner"', 'group = "iner"', "group: unknown group 'iner' (did you mean 'inner'?)"),
        ('quota = "20ms"', 'quota = "20ns"', "quota: must be microseconds, 1 or more (got 20ns)"),
        ("weight = 300", "weight = 0", "weight: "),
        ("group = 7", 'group = "inner"\narrival = "spawned"', "group: a spawned task is in its parent's"),
        (
            'group = "inner"',
            'group = "outer"',
            "group: 'outer' has groups in it, and Linux has tasks in the innermost",
        ),
        ("{run =", '{join = "outer"}, {run =', "join: 'outer' has groups in it"),
        ("{run =", '{join = "iner"}, {run =', "join: unknown group 'iner' (did you mean 'inner'?)"),
    ],
)
def test_wrong_groups_are_refused(old, new, message):
    with pytest.raises(SpecError) as caught:
        parse_workload(GROUPS.replace(old, new), name="groups.toml")
    assert message in str(caught.value)


CPUSETS = """
[workload]
title = "CPUs of groups"
question = "Where may each task run?"

[[group]]
name = "outer"
cpus = "0-2"

[[group]]
name = "inner"
parent = "outer"
cpus = [2, 3]

[[group]]
name = "plain"
parent = "outer"

[[task]]
name = "i"
group = "inner"
phases = [{spawn = "child"}, {run = "1ms"}]

[[task]]
name = "child"
arrival = "spawned"
phases = [{run = "1ms"}]

[[task]]
name = "p"
group = "plain"
affinity = [1, 5]
phases = [{run = "1ms"}]

[[task]]
name = "o"
group = "plain"
affinity = [70]
phases = [{run = "1ms"}]

[[task]]
name = "m"
group = "plain"
phases = [{join = "inner"}, {run = "1ms"}]

[[task]]
name = "r"
phases = [{run = "1ms"}]
"""


def test_a_task_may_run_where_its_group_may():
    workload = parse_workload(CPUSETS, name="cpusets.toml")
    assert workload.cpus_min == 71
    program = compile_workload(workload, seed=1)
    assert (program.header["version"], program.has_groups, program.has_cpusets) == (3, True, True)
    where = {name: program.cpus_of(pid - 1) for pid, name in program.names.items()}
    # What a task asks for and its group has; all of the group's if that is none.
    assert where == {
        "i": (2,), "child": (2,), "p": (1,), "o": (0, 1, 2), "m": (0, 1, 2), "r": None
    }  # fmt: skip
    # It is another one later.
    moving = {name: cpus for cpus, name in zip(program.affinity, program.names.values(), strict=True)}
    assert moving == where | {"m": None}
    assert [
        name
        for name, changed in zip(program.names.values(), program.has_mask_changed, strict=True)
        if changed
    ] == ["m"]
    lines = program.describe().splitlines()
    assert "group outer weight 100, CPUs [0, 1, 2]" in lines
    assert "group plain in outer, weight 100" in lines


def test_copies_keep_the_cpus_of_their_groups():
    workload = parse_workload(CPUSETS, name="cpusets.toml")
    one, two = (compile_workload(replace(workload, copies=n), seed=1) for n in (1, 2))
    assert two.affinity == one.affinity * 2


def test_rtapp_gets_the_cpus_of_groups():
    text = CPUSETS.replace('{spawn = "child"}, ', "").replace('{join = "inner"}, ', "")
    text = text.replace('[[task]]\nname = "child"\narrival = "spawned"', '[[task]]\nname = "child"')
    made = export_rtapp(parse_workload(text, name="cpusets.toml"))
    assert made.notes == ("groups: left out, but for the CPUs that their tasks have",)
    assert {name: task.get("cpus") for name, task in json.loads(made.text)["tasks"].items()} == {
        "i": [2], "child": None, "p": [1], "o": [0, 1, 2], "m": [0, 1, 2], "r": None
    }  # fmt: skip


def test_a_runner_without_groups_refuses_them_by_itself(root, tmp_path):
    """A program may come to it without schedlab; it ran as if all tasks were in the root."""
    (tmp_path / "groups").write_bytes(
        compile_workload(parse_workload(GROUPS, name="groups.toml"), seed=1).data
    )
    runner = root / "build" / "hosts" / "linux" / "schedlab-play"
    subprocess.run([runner, "--program", tmp_path / "groups", "--result", tmp_path / "result"], check=False)
    assert "has groups, which this host lacks" in (tmp_path / "result").read_text()


def test_a_host_without_groups_refuses_them(tmp_path):
    import schedlab

    (tmp_path / "groups.toml").write_text(GROUPS)
    with pytest.raises(UsageError, match="workload 'groups' has groups, which --host kernel lacks"):
        schedlab.run(str(tmp_path / "groups.toml"), "rr", host="kernel", out=tmp_path / "out")
