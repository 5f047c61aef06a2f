# SPDX-License-Identifier: MIT
"""Priority inversion, wait by wait, and its cure: who ran while the most important task waited.

A wait of the high task for something that the low one has (a lock, an answer)
is explained as far as the low task works for it. It is inverted where the task
in the middle runs meanwhile, which knows nothing of either. Both are read off
the records, so nothing here depends on the sum that test_classics.py looks at.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from schedlab.records.file import Kind, Stop

MS = 1_000_000
STRICT = ["rt_fifo", "rt_rr", "priority"]
#: What the low task does for a wait at most: its stay in the lock, its answer.
LOCK_MS, ANSWER_MS = 4, 3
LOCKED = '{lock = "bus"},\n        {run = "4ms"},\n        {unlock = "bus"},'
CEILING = """{set = {priority = 0}},
        {lock = "bus"},
        {run = "4ms"},
        {unlock = "bus"},
        {set = {priority = 9}},"""


@dataclass(frozen=True)
class Wait:
    """One wait of a task for another; all in milliseconds."""

    start_ms: float  #: Time of the block.
    length_ms: float  #: From the block to the run that follows.
    #: `low_ms`, `middle_ms`: CPU time of the other two meanwhile.
    low_ms: float
    middle_ms: float


def waits(played, high: str, low: str, middle: str) -> list[Wait]:
    """Every wait of `high` that ended since `low` woke it, on one CPU."""
    pid_of = {name: pid for pid, name in enumerate(played.names, start=1)}
    spans, blocked_ns, is_by_low = [], None, False
    for event in played.records.events:
        if event["task"] != pid_of[high]:
            continue
        t_ns, kind = int(event["t_ns"]), event["kind"]
        if kind == Kind.STOP and event["flags"] == Stop.BLOCKED:
            blocked_ns = t_ns
        elif kind == Kind.WAKE:
            is_by_low = event["arg"] == pid_of[low]
        elif kind == Kind.RUN and blocked_ns is not None:
            if is_by_low:
                spans.append((blocked_ns / MS, t_ns / MS))
            blocked_ns = None
    found = []
    for start, end in spans:
        ran = played.ran_ms(since_ms=start, until_ms=end)
        found.append(Wait(start, end - start, ran[low], ran[middle]))
    return found


@pytest.fixture
def lock(play, root):
    """Function that plays inversion-lock under a policy, with `change` made to its text."""

    def run(policy: str, change: tuple[str, str] | None = None, *, seed: int = 1, **knobs):
        text = (root / "workloads/classics/inversion-lock.toml").read_text()
        if change:
            assert text.count(change[0]) == 1, change[0]
            text = text.replace(*change)
        return waits(play(text, policy, seed=seed, **knobs), "high", "low", "middle")

    return run


@pytest.fixture
def pipe(play, root):
    """Function that plays inversion-pipe under a policy."""

    def run(policy: str, **knobs):
        text = (root / "workloads/classics/inversion-pipe.toml").read_text()
        return waits(play(text, policy, seed=1, **knobs), "client", "server", "other")

    return run


def assert_accounted(found: list[Wait]) -> None:
    """Without costs and with the CPU never idle, the other two explain a wait."""
    assert len(found) > 3
    for wait in found:
        assert wait.length_ms == pytest.approx(wait.low_ms + wait.middle_ms, abs=1e-6)


@pytest.mark.parametrize("policy", STRICT)
def test_the_middle_runs_while_the_high_waits_for_the_lock(lock, policy):
    found = lock(policy)
    assert_accounted(found)
    # The holder never makes it wait for longer than it keeps the lock ...
    assert max(wait.low_ms for wait in found) <= LOCK_MS
    # ... and yet it has waited for a burst of 120 ms that needs no lock.
    assert max(wait.middle_ms for wait in found) > 100
    assert max(wait.length_ms for wait in found) > 20 * LOCK_MS


@pytest.mark.parametrize("policy", STRICT)
def test_a_holder_at_the_ceiling_is_not_kept_from_letting_go(lock, policy):
    """Who takes the lock takes the priority of its most important user: no inversion.

    The immediate ceiling protocol of Sha, Rajkumar and Lehoczky (1990): the
    workload says what the policy cannot know, who holds a lock.
    """
    for wait in lock(policy, (LOCKED, CEILING)):
        assert wait.middle_ms == 0
        assert wait.length_ms <= LOCK_MS


@pytest.mark.parametrize("policy", STRICT)
def test_the_middle_runs_while_the_high_waits_for_an_answer(pipe, policy):
    found = pipe(policy)
    assert_accounted(found)
    assert len(found) == 60
    assert max(wait.low_ms for wait in found) == ANSWER_MS
    assert max(wait.middle_ms for wait in found) > 100
    assert sum(wait.middle_ms for wait in found) > 10 * sum(wait.low_ms for wait in found)


@pytest.mark.parametrize("policy", ["cfs", "eevdf"])
def test_fair_shares_bound_the_wait(lock, pipe, policy):
    """The low task's part of the CPU lets it finish: tens of milliseconds, never a burst."""
    assert max(wait.length_ms for wait in lock(policy)) < 50
    assert max(wait.length_ms for wait in pipe(policy)) < 40


# ---- inheritance: the knob inherit_ns of policies/priority.bpf.c ----------

#: Longer than any critical section here; a tick is 1 ms in all of these.
INHERIT_NS, TICK_MS = 10 * MS, 1
MIDDLE = 'name = "middle"\n'


@pytest.mark.parametrize("slice_ms", [10, 1])
def test_inheritance_cures_the_lock(lock, slice_ms):
    """Who was woken by the holder once lends to it: at most what the lock is held for."""
    lessons, rest = [], []
    for seed in range(1, 9):
        first, *later = lock("priority", seed=seed, inherit_ns=INHERIT_NS, slice_ns=slice_ms * MS)
        lessons.append(first)
        rest += later
    assert len(rest) > 10
    assert max(wait.middle_ms for wait in rest) == 0
    assert max(wait.length_ms for wait in rest) <= LOCK_MS + TICK_MS
    # Nobody can know before the first wake-up: that wait teaches.
    assert max(wait.middle_ms for wait in lessons) > 60


def test_inheritance_cures_the_pipe(pipe):
    """A pipe has no owner, and yet the client lends to who answers."""
    first, *later = pipe("priority", inherit_ns=INHERIT_NS)
    assert first.middle_ms > 70
    assert len(later) == 59
    assert {(wait.length_ms, wait.middle_ms) for wait in later} == {(ANSWER_MS, 0)}


def test_a_loan_shorter_than_the_work_does_not_cure(pipe):
    """The bound is one: after 1 ms and the tick that ends it the server is its old self."""
    later = pipe("priority", inherit_ns=1 * MS)[1:]
    assert max(wait.middle_ms for wait in later) > 70


@pytest.mark.parametrize("knobs", [{}, {"inherit_ns": INHERIT_NS}], ids=["strict", "inherit"])
def test_on_two_cpus(lock, knobs):
    """Two in the middle keep both CPUs; the holder may get either."""
    later = lock("priority", (MIDDLE, MIDDLE + "count = 2\n"), cpus=2, **knobs)[1:]
    assert len(later) >= 2
    if knobs:
        # The loan is made on one CPU; the other one sees it at a tick.
        assert max(wait.length_ms for wait in later) <= LOCK_MS + 2 * TICK_MS
    else:
        assert max(wait.length_ms for wait in later) > 20 * LOCK_MS


CHAIN = """
[workload]
title = "Two locks in a row"
question = "Does a loan reach the task that keeps the one who keeps the lock?"
tick = "1ms"
jitter = "0ms"

[[lock]]
name = "first"

[[lock]]
name = "second"

[[task]]
name = "low"
priority = 9
phases = [{loop = 60, do = [
    {lock = "second"}, {run = "3ms"}, {unlock = "second"}, {sleep = "exp(9ms, max=40ms)"},
]}]

[[task]]
name = "link"
priority = 7
phases = [{loop = 60, do = [
    {lock = "first"}, {run = "1ms"}, {lock = "second"}, {run = "1ms"}, {unlock = "second"},
    {unlock = "first"}, {sleep = "exp(9ms, max=40ms)"},
]}]

[[task]]
name = "middle"
priority = 5
phases = [{loop = 15, do = [{run = "120ms"}, {period = "200ms"}]}]

[[task]]
name = "high"
priority = 0
phases = [{loop = 60, do = [{period = "50ms"}, {lock = "first"}, {run = "1ms"}, {unlock = "first"}]}]
"""


def chain_waits(play, **knobs) -> list[Wait]:
    """Waits of high for link, once high was woken by link and link by low."""
    found = []
    for seed in range(12):
        played = play(CHAIN, "priority", seed=seed, **knobs)
        of_link = waits(played, "link", "low", "middle")
        known_ms = min((wait.start_ms + wait.length_ms for wait in of_link), default=float("inf"))
        of_high = waits(played, "high", "link", "middle")[1:]
        found += [wait for wait in of_high if wait.start_ms > known_ms]
    return found


@pytest.mark.full
def test_a_chain_of_two_locks(play):
    """High waits for link, which waits for low: its level reaches low through both."""
    strict, cured = chain_waits(play), chain_waits(play, inherit_ns=INHERIT_NS)
    assert len(cured) > 10
    assert max(wait.length_ms for wait in strict) > 100
    # Link's millisecond before the second lock, low's three, link's second one.
    assert max(wait.length_ms for wait in cured) <= 1 + 3 + 1 + 2 * TICK_MS
    assert max(wait.length_ms for wait in cured) > 2


FALSE = """
[workload]
title = "A waker that nobody waits for"
question = "What does it cost to believe in it?"
tick = "1ms"
jitter = "0ms"

[[pipe]]
name = "once"

[[task]]
name = "low"
priority = 9
phases = [{sleep = "3ms"}, {send = {pipe = "once", bytes = 1}}, {run = "2s"}]

[[task]]
name = "middle"
priority = 5
phases = [{loop = 150, do = [{sleep = "exp(4ms, max=9ms)"}, {run = "5ms"}]}]

[[task]]
name = "urgent"
priority = 0
phases = [{recv = {pipe = "once", bytes = 1}}, {loop = 60, do = [{sleep = "30ms"}, {run = "1ms"}]}]
"""


def test_a_false_waker_costs_its_bound_and_no_more(play):
    """`low` woke `urgent` once, which then sleeps by timers alone and lends all the same."""
    longest_ms, total_ms = {}, {}
    for inherit_ms in (0, 4, 8):
        played = play(FALSE, "priority", inherit_ns=inherit_ms * MS)
        latency_ms = played.latencies_ms("middle")
        longest_ms[inherit_ms], total_ms[inherit_ms] = latency_ms.max(), latency_ms.sum()
        # Beside the loan: a tick until low makes way, and urgent's own 1 ms.
        assert longest_ms[inherit_ms] <= inherit_ms + 2 * TICK_MS + 1
        assert latency_ms.sum() <= total_ms[0] + 61 * (inherit_ms + TICK_MS)
    # It does cost: this is the price of guessing.
    assert longest_ms[0] < longest_ms[4] < longest_ms[8]
    assert total_ms[0] < total_ms[4] < total_ms[8]


def test_a_timer_is_nobody_s_wake_up(play):
    """Who is woken while `low` happens to run learns nothing: all is as without the knob."""
    text = FALSE.replace('{recv = {pipe = "once", bytes = 1}}', '{sleep = "3ms"}')
    text = text.replace('{send = {pipe = "once", bytes = 1}}, ', "").replace('[[pipe]]\nname = "once"', "")
    assert "once" not in text
    without, with_loans = (play(text, "priority", inherit_ns=ns) for ns in (0, INHERIT_NS))
    assert (without.records.events == with_loans.records.events).all()


@pytest.mark.parametrize(
    ("name", "task", "in_time_ms"), [("inversion-lock", "high", 3000), ("inversion-pipe", "client", 2400)]
)
def test_what_the_whole_run_gains(play, root, name, task, in_time_ms):
    """All rounds but those that the first wait takes are in time."""
    text = (root / f"workloads/classics/{name}.toml").read_text()
    strict = play(text, "priority", seed=1).finish_ms(task)
    cured = play(text, "priority", seed=1, inherit_ns=INHERIT_NS).finish_ms(task)
    assert in_time_ms <= cured <= in_time_ms + 160
    assert strict > cured + 200
