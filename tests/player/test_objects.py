# SPDX-License-Identifier: MIT
"""What locks, pipes, conditions and barriers do, and whom they wake in which order."""

import subprocess

import pytest


@pytest.fixture(scope="module")
def objects(root, tmp_path_factory):
    """Function that runs operations, one per argument, and returns what happened."""
    binary = tmp_path_factory.mktemp("objects") / "objects_tool"
    subprocess.run(
        ["cc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         f"-I{root / 'include'}", f"-I{root / 'player'}", "-o", binary,
         root / "tests" / "player" / "objects_tool.c", root / "player" / "objects.c"],
        check=True,
    )  # fmt: skip

    def run(*operations):
        done = subprocess.run(
            [binary], input="\n".join(operations), capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    return run


def test_lock_errors(objects):
    """A lock is not taken twice by its holder, and released only by it."""
    assert objects("unlock a 0", "lock a 0", "lock a 0", "unlock b 0") == ["a error", "a error", "b error"]


def test_lock_is_handed_to_the_longest_waiter(objects):
    """The next holder is decided by the unlock, so a third task cannot get in between."""
    assert objects("lock a 0", "lock b 0", "lock c 0", "unlock a 0", "lock a 0", "unlock b 0", "unlock c 0") == [
        "b blocks: lock", "c blocks: lock", "b woken by a", "a blocks: lock", "c woken by b", "a woken by c",
    ]  # fmt: skip


def test_pipe_keeps_order(objects):
    """A small message does not overtake a large one that waits."""
    assert objects("size a 0 4", "recv a 0 3", "recv b 0 1", "send c 0 1", "send c 0 2", "send c 0 1") == [
        "a blocks: data in pipe",
        "b blocks: data in pipe",
        "a woken by c sync",
        "b woken by c sync",
    ]


def test_message_larger_than_the_pipe(objects):
    """It goes through in steps; a task may be complete before it has left the CPU."""
    assert objects("size a 0 2", "recv a 0 5", "send b 0 5", "send b 0 3", "recv a 0 3") == [
        "a blocks: data in pipe", "b blocks: room in pipe", "b woken by b sync", "a woken by b sync",
        "b blocks: room in pipe", "a blocks: data in pipe", "b woken by a sync", "a woken by a sync",
    ]  # fmt: skip


def test_barrier_is_used_again(objects):
    """The last to arrive does not block, and the next round begins at zero."""
    rounds = ["arrive a 0", "arrive b 0", "arrive c 0"]
    once = ["a blocks: barrier", "b blocks: barrier", "a woken by c", "b woken by c"]
    assert objects("size a 0 3", *rounds, *rounds) == [*once, *once]


def test_signal_wakes_one_or_all(objects):
    """The longest waiter first; a signal without a waiter is not kept."""
    assert objects("signal d 0", "await a 0", "await b 0", "await c 0", "signal d 0", "signal d 0 1") == [
        "a blocks: condition",
        "b blocks: condition",
        "c blocks: condition",
        "a woken by d",
        "b woken by d",
        "c woken by d",
    ]


def test_condition_returns_with_its_lock(objects):
    """A signalled task stays asleep until it has the lock back."""
    assert objects("lock a 1", "await a 0 2", "lock b 1", "signal b 0", "unlock b 1", "unlock a 1") == [
        "a blocks: condition",
        "a now: lock",
        "a woken by b",
    ]
    assert objects("lock a 1", "await a 0 2", "signal b 0", "unlock a 1") == [
        "a blocks: condition",
        "a woken by b",
    ]
    assert objects("await a 0 2") == ["a error"]


@pytest.mark.parametrize("gone", "bcd")
def test_waiter_that_gives_up(objects, gone):
    """First, middle or last in the list: the others keep their order, and a later one its place."""
    left = [name for name in "bcde" if name != gone]
    made = objects(
        "lock a 0",
        "lock b 0",
        "lock c 0",
        "lock d 0",
        f"drop {gone} 0",
        "lock e 0",
        "unlock a 0",
        *(f"unlock {name} 0" for name in left),
    )
    assert [line[0] for line in made if "woken" in line] == left
