# SPDX-License-Identifier: MIT
"""The check of workload programs, and the player that trusts it."""

from __future__ import annotations

import dataclasses
import subprocess

import pytest

from player.build_program import SPAWNED, TABLE, Program, Task, every_verb

RUN = ("run", 0, 5)
EXIT = ("exit", 0, 0)


@pytest.fixture(scope="session")
def tool(root, tmp_path_factory):
    """Function that runs the test tool, built with sanitizers, on a program."""
    folder = tmp_path_factory.mktemp("player")
    binary = folder / "player_tool"
    sources = [root / "player" / name for name in ("program.c", "player.c", "work.c")]
    subprocess.run(
        ["cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         f"-I{root / 'include'}", f"-I{root / 'player'}", "-o", binary,
         root / "tests" / "player" / "player_tool.c", *sources],
        check=True,
    )  # fmt: skip

    def run(verb, data, *words):
        path = folder / "program"
        if data is not None:
            path.write_bytes(data)
            words = (path, *words)
        done = subprocess.run([binary, verb, *map(str, words)], capture_output=True, text=True, check=False)
        assert not done.stderr, done.stderr
        return done.stdout.rstrip("\n")

    return run


def one(*ops, **fields):
    """A program of one task with these ops."""
    return Program([Task(list(ops), **fields)], [(1, 0)], [4, 0])


GROUP, ROOT_GROUP = (5, 0), [0, 100, 100_000, 2**64 - 1]


def grouped(objects, values, *, version=2, **task) -> Program:
    return Program([Task([EXIT], **task)], objects, values, version=version)


BAD = {
    "no task": (Program([]), "number of tasks"),
    "no exit": (one(RUN), "the last op is not exit"),
    "early exit": (one(EXIT, EXIT), "exit before the last op"),
    "unknown verb": (one((23, 0, 0), EXIT), "task 0: op 0: unknown verb (got 23"),
    "unknown flag": (one(("run", 0, 1, 8, 0), EXIT), "unknown flags"),
    "device flag": (one(("run", 0, 1, 2, 0), EXIT), "a device flag on an op"),
    "object": (one(("lock", 1, 0), EXIT), "object (got 1, limit 1)"),
    "kind": (one(("send", 0, 1), EXIT), "object is of another kind"),
    "slot": (one(("run", 0, 1, 0, 16), EXIT), "slot (got 16, limit 15)"),
    "table": (one(("run", 0, 1 << 32 | 2, TABLE, 0), EXIT), "table leaves the values"),
    "empty table": (one(("run", 0, 1 << 32, TABLE, 0), EXIT), "table leaves the values"),
    "table verb": (one(("period", 0, 1, TABLE, 0), EXIT), "a table on a verb"),
    "period": (one(("period", 0, 0), EXIT), "a period of 0 ns"),
    "time": (one(("run", 0, 1 << 62), EXIT), f"time (got {1 << 62}, limit {(1 << 62) - 1})"),
    "chunk": (one(("read", 0, 10), EXIT), "calls of 0 bytes"),
    "work": (one(("work", 3, 10), EXIT), "unknown work"),
    "attribute": (one(("set", 8, 10), EXIT), "unknown attribute"),
    "change of a task": (one(("change", 1, 0, 0, 7), EXIT), "task that is changed (got 1, limit 1)"),
    "change of what": (one(("change", 0, 1, 0, 8), EXIT), "unknown attribute (got 8"),
    "no mask": (one(("change", 0, 0, 0, 15), EXIT), "a mask leaves the values"),
    "change of a mask": (one(("change", 0, 1 << 32 | 2, 0, 15), EXIT), "a mask leaves the values"),
    "idle change": (
        one(("loop", 2, 0), ("change", 0, 1, 0, 7), ("end", 0, 0), EXIT),
        "a loop in which nothing takes time",
    ),
    "open loop": (one(("loop", 2, 1), RUN, EXIT), "loop without an end of its own"),
    "loop outside": (one(("loop", 9, 1), RUN, EXIT), "loop ends outside the task"),
    "stray end": (one(RUN, ("end", 0, 0), EXIT), "end of a loop that is not"),
    "idle loop": (
        one(("loop", 2, 0), ("set", 0, 1), ("end", 0, 0), EXIT),
        "a loop in which nothing takes time",
    ),
    "crossed loops": (
        one(("loop", 3, 1, 0, 0), ("loop", 4, 1, 0, 1), RUN, ("end", 0, 0, 0, 0), ("end", 1, 0, 0, 1), EXIT),
        "end of a loop that is not the innermost",
    ),
    "one slot twice": (
        one(("loop", 4, 1), ("loop", 3, 1), RUN, ("end", 1, 0), ("end", 0, 0), EXIT),
        "slot of a loop around this one",
    ),
    "counter as cursor": (
        one(("loop", 2, 1), ("run", 0, 1, TABLE, 0), ("end", 0, 0), EXIT),
        "a slot both counts a loop and walks a table",
    ),
    "timer period": (one(("timer", 0, 0), EXIT), "a period of 0 ns"),
    "timer mode": (one(("timer", 2, 1), EXIT), "mode of a timer (got 2"),
    "timer as counter": (
        one(("loop", 2, 1), ("timer", 0, 1), ("end", 0, 0), EXIT),
        "a slot both keeps a timer and counts",
    ),
    "await": (one(("await", 0, 0), EXIT), "object is of another kind"),
    "await lock": (Program([Task([("await", 0, 2), EXIT])], [(4, 0)]), "lock of an await (got 1, limit 1)"),
    "await no lock": (
        Program([Task([("await", 0, 1), EXIT])], [(4, 0)]),
        "an await lets go of what is no lock",
    ),
    "signal": (Program([Task([("signal", 0, 2), EXIT])], [(4, 0)]), "how many a signal wakes"),
    "kind of object": (Program([Task([EXIT])], [(6, 0)]), "unknown kind (got 6, limit 5)"),
    "children": (one(("spawn", 1, 1), EXIT), "children leave the tasks"),
    "parent": (
        Program([Task([("spawn", 1, 1), EXIT]), Task([EXIT])]),
        "a child whose parent is another task",
    ),
    "never spawned": (
        Program([Task([EXIT]), Task([EXIT], SPAWNED, 0)]),
        "task 1: its parent does not spawn it",
    ),
    "spawned twice": (
        Program([Task([("spawn", 1, 1), ("spawn", 1, 1, 0, 1), EXIT]), Task([EXIT], SPAWNED, 0)]),
        "a child that an earlier spawn starts",
    ),
    "spawn slot": (
        Program(
            [
                Task([("spawn", 1, 1), ("spawn", 2, 1), EXIT]),
                Task([EXIT], SPAWNED, 0),
                Task([EXIT], SPAWNED, 0),
            ]
        ),
        "slot of a spawn of other children",
    ),
    "own parent": (Program([Task([EXIT], SPAWNED, 0)]), "parent must stand before"),
    "neither": (one(EXIT, arrival_ns=SPAWNED), "either a parent or an arrival"),
    "nice": (one(EXIT, nice=20), "nice is outside"),
    "weight": (one(EXIT, weight=0), "weight"),
    "no CPU": (one(EXIT, affinity=1, affinity_words=1), "may run on no CPU at all"),
    "affinity": (one(EXIT, affinity=1, affinity_words=2), "affinity leaves"),
    "name": (one(EXIT, name=99), "name leaves the strings"),
    "string": (dataclasses.replace(one(EXIT), strings=b"x"), "string has no end"),
    "barrier": (Program([Task([EXIT])], [(3, 9)]), "object 0: parties of the barrier"),
    "pipe": (Program([Task([EXIT])], [(2, 0)]), "object 0: a pipe that holds 0 bytes"),
    "group of old": (Program([Task([EXIT])], [GROUP], ROOT_GROUP), "object 0: a group in a program of"),
    "group values": (grouped([GROUP], ROOT_GROUP[:3]), "object 0: group leaves the values"),
    "group parent": (grouped([GROUP], [1, 100, 1, 1]), "object 0: parent must stand before"),
    "parent a lock": (grouped([(1, 0), GROUP], [1, 100, 1, 1]), "object 1: its parent is no group"),
    "group weight": (grouped([GROUP], [0, 0, 1, 1]), "object 0: weight"),
    "group period": (grouped([GROUP], [0, 100, 0, 1]), "object 0: a period or quota of 0"),
    "no value for CPUs": (grouped([GROUP], ROOT_GROUP, version=3), "object 0: group leaves the values"),
    "group mask": (
        grouped([GROUP], [*ROOT_GROUP, 4 << 32 | 2], version=3),
        "object 0: affinity leaves the values",
    ),
    "group of no CPU": (
        grouped([GROUP], [*ROOT_GROUP, 5 << 32 | 1, 0], version=3),
        "object 0: may run on no CPU",
    ),
    "no such group": (grouped([GROUP], ROOT_GROUP, group_object=2), "task 0: group (got 2, limit 1)"),
    "in a lock": (grouped([(1, 0), GROUP], ROOT_GROUP, group_object=1), "task 0: is in what is no group"),
}


def test_accepts_groups(tool):
    assert (
        tool("check", grouped([GROUP, (5, 4)], [*ROOT_GROUP, 1, 1, 1, 2**64 - 1], group_object=2).pack())
        == "ok"
    )


def test_spawns_of_the_same_children_share_a_slot(tool):
    """A task may start its children from several places, counted in one slot."""
    children = [Task([EXIT], SPAWNED, 0), Task([EXIT], SPAWNED, 0)]
    parent = Task([("spawn", 1, 2), ("run", 0, 5), ("spawn", 1, 2), EXIT])
    program = Program([parent, *children]).pack()
    assert tool("check", program) == "ok"
    lines = tool("play", program, 0).splitlines()
    assert [line for line in lines if "spawn" in line] == ["0 spawn 1 0", "5 spawn 2 0"]


@pytest.mark.parametrize("name", BAD)
def test_refuses_and_says_why(tool, name):
    program, why = BAD[name]
    assert why in tool("check", program.pack())


def test_refuses_other_bytes(tool):
    good = every_verb().pack()
    assert tool("check", good) == "ok"
    assert "shorter than its header (got 50" in tool("check", good[:50])
    assert "truncated" in tool("check", good[:-1])
    assert "bytes behind it" in tool("check", good + b"\0")
    assert "not a workload program" in tool("check", b"x" * 200)
    assert "version" in tool("check", good[:8] + b"\4" + good[9:])


def test_accepts_tasks_that_share_their_ops(tool):
    """Sharing is by equal op_first; here both name the first task's ops."""
    data = bytearray(Program([Task([RUN, EXIT]), Task([RUN, EXIT])]).pack())
    first = 112 + 88 + 24 + 3 * 4
    assert data[first] == 2
    data[first] = 0
    assert tool("check", bytes(data)) == "ok"


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_no_damage_leads_out_of_the_file(tool, seed):
    """Whatever is accepted is then played to its end, under AddressSanitizer."""
    said = tool("fuzz", every_verb().pack(), 60_000, seed)
    accepted = int(said.split()[0])
    assert 600 < accepted < 59_000, said


def test_plays_loops_tables_children_and_periods(tool):
    lines = tool("play", every_verb().pack(), 0).splitlines()
    assert lines == [
        "0 set 1 7",
        "0 spawn 1 0",
        "0 spawn 2 0",
        "0 run 100 0",
        "100 lock 0 0",
        "100 run 200 0",
        "300 lock 0 0",
        "300 run 300 0",
        "600 lock 0 0",
        "600 unlock 0 0",
        "600 work 0 100",
        "600 sleep_until 5600 0",
        "5600 sleep_until 6000 0",
        "6000 read 2 4096",
        "6000 write 2 4096",
        "6000 yield 0 0",
        "6000 send 1 10",
        "6000 barrier 2 0",
        "6000 lock 0 0",
        "6000 await_unlocked 3 0",
        "6000 unlock 0 0",
        "6000 sleep_until 50000 0",
        "50000 sleep_until 100000 0",
        "100000 wait 1 0",
        "100000 wait 1 0",
        "end 0",
    ]


def test_a_release_that_is_now_has_come_and_those_that_passed_are_skipped(tool):
    """Periods of 10: jobs that end just at one, past two, and at once."""
    period = ("period", 0, 10)
    program = one(
        period,
        ("run", 0, 10),
        period,
        ("run", 0, 23),
        period,
        ("run", 0, 4),
        period,
        period,
        ("period", 0, 30),
        ("period", 0, 35),
        EXIT,
    )
    assert tool("play", program.pack(), 0).splitlines() == [
        "0 sleep_until 10 0",
        "10 run 10 0",
        "20 run 23 0",  # the job of 10 ended just as this one was due
        "43 sleep_until 50 0",  # 30 and 40 have passed
        "50 run 4 0",
        "54 sleep_until 60 0",
        "60 sleep_until 70 0",  # nothing was done at 60: the next one
        "70 sleep_until 90 0",
        "90 sleep_until 105 0",
        "end 0",
    ]


def test_a_table_wraps_and_a_loop_for_ever_is_stopped_by_the_host(tool):
    program = one(("loop", 2, 0, 0, 0), ("run", 0, 2, TABLE, 1), ("end", 0, 0, 0, 0), EXIT)
    program.values = [4, 6]
    lines = tool("play", program.pack(), 0).splitlines()
    assert [line.split()[2] for line in lines[:4]] == ["4", "6", "4", "6"]
    assert lines[-1] == "end -1"


def test_waiting_for_children_never_spawned_ends_the_task(tool):
    assert tool("play", one(("wait", 2, 0), EXIT).pack(), 0) == "end -1002"
    program = Program(
        [
            Task([("loop", 2, 2, 0, 0), ("spawn", 1, 1, 0, 1), ("end", 0, 0, 0, 0), EXIT]),
            Task([EXIT], SPAWNED, 0),
        ]
    )
    assert "nothing takes time" in tool("check", program.pack())
    program.tasks[0].ops[2:3] = [("yield", 0, 0), ("end", 0, 0, 0, 0)]
    program.tasks[0].ops[0] = ("loop", 3, 2, 0, 0)
    assert tool("play", program.pack(), 0).splitlines()[-1] == "end -1001"


def test_work_is_the_same_for_ever(tool):
    """These numbers pin what a unit is; a change makes old results worthless."""
    pi = int(tool("work", None, 0, 1_000_000)) / 2**60
    assert abs(pi - 3.141592653589793) < 2e-6
    multiply_adds = sum((k + 1) * (k * 5 + 2) for k in range(32))
    assert int(tool("work", None, 1, 32)) == multiply_adds
    assert int(tool("work", None, 2, 12345)) == 12345
