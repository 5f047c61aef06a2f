# SPDX-License-Identifier: MIT
"""Known answers of the two credit schedulers.

As in test_known_answers.py: each schedule can be worked out with pencil and paper.
"""

from __future__ import annotations

import itertools

import pytest

from .test_known_answers import hog, sleeper, task, workload

# ---- credit, as in report 3 --------------------------------------------------


def test_credit_report_does_nothing_where_all_stay_under(play):
    """All credits above 60 / N = 15: shares are equal, whatever the credits."""
    played = play(
        workload(*(hog(f"c{n}", credits=n) for n in (25, 50, 75, 100)), horizon="60s"), "credit_report"
    )
    for share in played.shares().values():
        assert share == pytest.approx(0.25, abs=0.001)
    assert {turn.ran_ms for turn in played.turns[:-1]} == {30}


def test_credit_report_low_credits_are_a_limit(play):
    """10 credits buy 5 of every 30 ms; the other one's 100 buy more than it can use."""
    played = play(workload(hog("poor", credits=10), hog("rich", credits=100), horizon="60s"), "credit_report")
    assert played.shares()["poor"] == pytest.approx(1 / 6, abs=0.002)


def test_credit_report_deals_threads_in_turn(play):
    played = play(workload(hog("h", count=12), horizon="1s"), "credit_report", cpus=4, balance=0)
    assert played.cpus() == {pid: {(pid - 1) % 4} for pid in range(1, 13)}


@pytest.mark.parametrize(
    ("balance", "number", "stays"), [(0, 4, 4), (1, 3, 3), (1, 4, 3), (2, 3, 2), (3, 4, 2)]
)
def test_credit_report_balance(play, balance, number, stays):
    """CPU 0 has long threads, CPU 1 as many that end at once.

    Pulling as in the report takes one only while more than two wait behind the
    one that runs; from the longest queue, whenever the CPU has none; pushing goes
    on until there is nothing to gain.
    """
    names = [
        task(f"long{i // 2}" if i % 2 == 0 else f"short{i // 2}", f'run = "{"40s" if i % 2 == 0 else "1ms"}"')
        for i in range(2 * number)
    ]
    played = play(workload(*names, horizon="20s"), "credit_report", cpus=2, balance=balance)
    last = {}
    for turn in played.turns:
        if turn.name.startswith("long"):
            last[turn.name] = turn.cpu
    assert sorted(last.values()).count(0) == stays


# ---- credit, as in Xen --------------------------------------------------------


@pytest.mark.parametrize(
    ("cpus", "credits"),
    [
        (1, [25, 50, 75, 100]),
        (1, [10, 20, 40, 80, 160, 320, 640, 1000]),
        (1, [100] * 8),
        (2, [25, 50, 75, 100] * 4),
        (4, [25, 50, 75, 100] * 8),
    ],
)
def test_credit_xen_shares(play, cpus, credits):
    """At most 8 per CPU: within 1 % of the machine's time over 60 s; mostly far less."""
    tasks = [hog(f"h{i}", seconds=300, credits=n) for i, n in enumerate(credits)]
    played = play(workload(*tasks, horizon="60s"), "credit", cpus=cpus)
    for i, n in enumerate(credits):
        due_ms = 60_000 * cpus * n / sum(credits)
        assert played.ran_ms()[f"h{i}"] == pytest.approx(due_ms, abs=600, rel=0.05)


@pytest.mark.parametrize("cpus", [1, 4])
def test_credit_xen_shares_whoever_came_first(play, cpus):
    """The first tasks have the machine to themselves for a few periods."""
    credits = [10, 20, 40, 80, 160, 320, 640, 1000] * cpus
    tasks = [hog(f"h{i}", seconds=300, credits=n, arrival=f'"{7 * i}ms"') for i, n in enumerate(credits)]
    played = play(workload(*tasks, horizon="62s"), "credit", cpus=cpus)
    ran = played.ran_ms(since_ms=2000)
    for i, n in enumerate(credits):
        assert ran[f"h{i}"] == pytest.approx(60_000 * cpus * n / sum(credits), abs=600, rel=0.1)


@pytest.mark.parametrize("cpus", [1, 4])
def test_credit_xen_poorest_task_runs_now_and_then(play, cpus):
    """Alone at first, it owes what it would take minutes to earn."""
    played = play(
        workload(
            hog("poor", credits=1, count=cpus),
            hog("rich", credits=1000, count=7 * cpus, arrival='{gap = "7ms"}'),
            horizon="100s",
        ),
        "credit",
        cpus=cpus,
    )
    starts_s = [turn.start_ns / 1e9 for turn in played.turns if turn.pid == 1]
    assert max(b - a for a, b in itertools.pairwise(starts_s)) < 20
    assert played.shares(since_ms=10_000)["poor"] < 0.005


def test_credit_xen_nobody_gets_more_than_a_cpu(play):
    """900 of 1,100 credits would be 1.6 CPUs: what it cannot use goes to the others."""
    played = play(
        workload(hog("big", credits=900), hog("a", credits=100), hog("b", credits=100), horizon="60s"),
        "credit",
        cpus=2,
    )
    ran = played.ran_ms()
    assert ran["big"] == pytest.approx(60_000, abs=600)
    assert ran["a"] == pytest.approx(30_000, abs=600)
    assert ran["b"] == pytest.approx(30_000, abs=600)


@pytest.mark.parametrize("cap", [1, 10, 20, 55])
def test_credit_xen_cap_alone(play, cap):
    """An idle CPU does not tempt it."""
    played = play(workload(hog("capped", cap=f'"{cap}%"'), horizon="60s"), "credit")
    assert played.ran_ms()["capped"] / 600 == pytest.approx(cap, abs=0.1)


def test_credit_xen_caps_among_others(play):
    """Shares of a quarter each; two are capped below, the rest is shared by the others."""
    caps = {"a": "10%", "b": "20%"}
    played = play(
        workload(*(hog(n, cap=f'"{c}"') for n, c in caps.items()), hog("c"), hog("d"), horizon="60s"),
        "credit",
    )
    shares = played.shares()
    assert shares["a"] == pytest.approx(0.10, abs=0.01)
    assert shares["b"] == pytest.approx(0.20, abs=0.01)
    assert shares["c"] == pytest.approx(0.35, abs=0.01)
    assert shares["d"] == pytest.approx(0.35, abs=0.01)


def test_credit_xen_caps_on_four_cpus(play):
    """Eight per CPU, each fourth one capped far below its share of an eighth."""
    tasks = [hog(f"h{i}", seconds=300, **({"cap": '"5%"'} if i % 4 == 0 else {})) for i in range(32)]
    played = play(workload(*tasks, horizon="60s"), "credit", cpus=4)
    ran = played.ran_ms()
    for i in range(32):
        due_ms = 3000 if i % 4 == 0 else (240_000 - 8 * 3000) / 24
        assert ran[f"h{i}"] == pytest.approx(due_ms, abs=600)


def test_credit_xen_cap_is_no_more_than_the_share(play):
    """A cap above the share changes nothing."""
    played = play(workload(hog("a", cap='"90%"'), hog("b"), hog("c"), hog("d"), horizon="60s"), "credit")
    for share in played.shares().values():
        assert share == pytest.approx(0.25, abs=0.01)


def test_credit_xen_boost_gives_low_latency(play):
    jobs = workload(hog("hog", count=4), sleeper("io", "1ms", "40ms"), horizon="20s")
    boosted = play(jobs, "credit").latencies_ms("io")
    plain = play(jobs, "credit", wakeup_boost=0).latencies_ms("io")
    assert boosted.max() == 0
    assert plain.mean() > 15


def test_credit_xen_parked_task_leaves_the_cpu_idle(play):
    """It runs again at an accounting, not only when somebody else wakes up."""
    played = play(workload(hog("capped", cap='"50%"'), horizon="3s"), "credit")
    idle_ms = played.result["cpus"][0]["idle_ns"] / 1e6
    assert idle_ms == pytest.approx(1500, abs=30)
    longest_ms = max(
        (b.start_ns - a.end_ns) / 1e6 for a, b in zip(played.turns, played.turns[1:], strict=False)
    )
    assert longest_ms <= 30


def test_credit_xen_what_a_sleeper_leaves_is_shared_by_credits(play):
    """A rich task that hardly runs must not make the others equal."""
    played = play(
        workload(
            sleeper("rich", "1ms", "19ms", credits=1000),
            hog("b", credits=200),
            hog("c", credits=100),
            horizon="60s",
        ),
        "credit",
    )
    ran = played.ran_ms()
    assert ran["b"] / (ran["b"] + ran["c"]) == pytest.approx(2 / 3, abs=0.02)


def test_credit_xen_a_sleeper_shares_until_it_is_in_credit_by_a_period(play):
    """
    When `a` falls asleep at 599 ms, both have been given 19 times 15 ms: `a` has used 15 ms
    more, `b` 14. Four times 15 ms bring `a` beyond 30, to 45; `b` is given all of the 30
    periods that follow, in which it runs alone: at 1599 ms it is 54 ms in debt.
    """
    played = play(
        workload(
            task("a", 'run = "300ms"', 'sleep = "1s"', 'run = "2s"'), hog("b"), horizon="4s", tick="1ms"
        ),
        "credit",
        wakeup_boost=0,
        slice_ns=1_000_000,
    )
    ran = played.ran_ms(since_ms=1599, until_ms=2599)
    assert ran["a"] - ran["b"] == pytest.approx(45 + 54, abs=2)
