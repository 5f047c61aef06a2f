# SPDX-License-Identifier: MIT
"""Each policy on a workload whose schedule can be worked out with pencil and paper.

Ticks are 10 ms unless a test says otherwise, and slices end at ticks.
"""

from __future__ import annotations

import itertools
import math

import pytest

from schedlab.records.file import Kind, Stop

# fmt: off
POLICIES = [
    "fifo", "rr", "priority", "lottery", "mlfq", "cfs", "credit", "credit_report",
    "stride", "sjf", "srtf", "edf", "rt_fifo", "rt_rr", "o1", "eevdf",
]
# fmt: on


def workload(*tasks: str, tick: str = "10ms", horizon: str | None = None) -> str:
    """TOML of a workload without jitter."""
    head = f'[workload]\ntitle = "t"\nquestion = "q"\ntick = "{tick}"\njitter = "0ms"\n'
    if horizon:
        head += f'horizon = "{horizon}"\n'
    return head + "\n".join(tasks)


def task(name: str, *phases: str, **keys) -> str:
    """One [[task]] table; a phase is TOML without braces, a key is TOML as it is."""
    body = ", ".join(phase if phase.startswith('"') else f"{{{phase}}}" for phase in phases)
    lines = ["[[task]]", f'name = "{name}"']
    lines += [f"{key} = {value}" for key, value in keys.items()]
    return "\n".join([*lines, f"phases = [{body}]"])


def hog(name: str, seconds: int = 100, **keys) -> str:
    """A task that only computes."""
    return task(name, f'run = "{seconds}s"', **keys)


def sleeper(name: str, run: str, sleep: str, **keys) -> str:
    """A task that computes and sleeps for ever."""
    return task(name, f'loop = "forever", do = [{{run = "{run}"}}, {{sleep = "{sleep}"}}]', **keys)


# ---- what holds for several policies --------------------------------------


@pytest.mark.parametrize(
    "policy", [name for name in POLICIES if name not in ("lottery", "credit", "credit_report")]
)
@pytest.mark.parametrize("idle", [0, 1])
def test_a_task_that_makes_way_goes_to_an_idle_cpu(play, policy, idle):
    """`free` yields to `bound`, which may only run where `free` does, while the other CPU is idle."""
    played = play(
        workload(
            task("first", 'run = "1ms"', affinity=f"[{idle}]"),
            task("free", 'run = "8ms"', '"yield"', 'run = "32ms"'),
            task("bound", 'run = "20ms"', arrival='"5ms"', affinity=f"[{1 - idle}]", burst='"50ms"'),
        ),
        # Within the slice of `free`, that is, of which the first is half of one.
        policy,
        cpus=2,
        **({"slice_ns": 20_000_000} if policy == "eevdf" else {}),
    )
    assert played.finish_ms("free") == 40
    assert played.finish_ms("bound") == 28


@pytest.mark.parametrize(
    ("policy", "knobs"),
    [
        ("rr", {}),
        ("priority", {}),
        ("mlfq", {"rotate": 1}),
        ("credit_report", {"slice_ns": 10_000_000}),
        ("credit", {"slice_ns": 10_000_000}),
        ("stride", {}),
        ("edf", {}),
        ("rt_rr", {"slice_ns": 10_000_000}),
        ("o1", {"slice_ns": 10_000_000}),
        ("eevdf", {"slice_ns": 10_000_000, "preempt": 0}),
    ],
)
@pytest.mark.parametrize("arrival_ms", [95, 105])
def test_a_task_alone_is_given_slices_of_the_policy(play, policy, knobs, arrival_ms):
    """`late` may have to wait for 5 ms: not for the kernel's 20, whichever tick these begin at."""
    played = play(
        workload(task("early", 'run = "300ms"'), task("late", 'run = "10ms"', arrival=f'"{arrival_ms}ms"')),
        policy,
        **knobs,
    )
    assert played.turns[1].name == "late"
    assert played.turns[1].start_ns == (arrival_ms + 5) * 1_000_000


@pytest.mark.parametrize("policy", ["stride", "lottery"])
def test_tickets_that_another_program_writes_count_from_then_on(play, policies_folder, tmp_path, policy):
    """S36: nothing tells the policy. Here its own tick writes, after two of four seconds."""
    write = """
void BPF_STRUCT_OPS(other_tick, struct task_struct *p)
{
	struct task_attr *attr = task_attr(p);

	if (attr && p->pid == 1 && scx_bpf_now() - p->start_time >= 2000000000ULL)
		attr->tickets = 300;
}
"""
    text = (policies_folder / f"{policy}.bpf.c").read_text()
    define = f"SCX_OPS_DEFINE({policy}_ops,"
    assert define in text and ".tick" not in text
    written = tmp_path / f"{policy}.bpf.c"
    written.write_text(text.replace(define, f"{write}\n{define} .tick = (void *)other_tick,"))
    played = play(workload(hog("a", tickets=100), hog("b", tickets=100), horizon="4s"), str(written))
    slack = 0.01 if policy == "stride" else 0.1
    assert played.shares(until_ms=2000)["a"] == pytest.approx(1 / 2, abs=slack)
    assert played.shares(since_ms=2000)["a"] == pytest.approx(3 / 4, abs=slack)


def test_all_policies_differ(play):
    """One workload, a schedule each."""
    jobs = workload(
        hog("a", 1, priority=4, tickets=300, credits=300, weight=300),
        hog("b", 1, priority=6),
        sleeper("c", "3ms", "17ms", deadline='"25ms"'),
        sleeper("d", "4ms", "31ms", deadline='"20ms"', priority=5),
        task("e", 'run = "40ms"', arrival='"100ms"', burst='"run"', priority=5),
        task("f", 'run = "250ms"', arrival='"101ms"', burst='"run"', priority=5),
        horizon="3s",
    )
    seen = {}
    for policy in POLICIES:
        events = play(jobs, policy).records.events
        seen[policy] = events[events["kind"] == Kind.RUN].tobytes()
    assert len(set(seen.values())) == len(POLICIES)


# ---- fifo -------------------------------------------------------------------


def test_fifo_is_a_convoy(play):
    played = play(
        workload(
            task("long", 'run = "500ms"'),
            task("short", 'run = "1ms"', arrival='"1ms"'),
            task("other", 'run = "1ms"', arrival='"2ms"'),
        ),
        "fifo",
    )
    assert played.order() == ["long", "short", "other"]
    assert played.finish_ms("short") == 501
    assert all(turn.why != Stop.PREEMPTED for turn in played.turns)


def test_fifo_stays_endless_after_a_yield_to_nobody(play):
    played = play(
        workload(task("first", '"yield"', 'run = "100ms"'), task("second", 'run = "1ms"', arrival='"1ms"')),
        "fifo",
    )
    assert played.finish_ms("first") == 100


# ---- rr ---------------------------------------------------------------------


def test_rr_takes_turns(play):
    played = play(workload(*(task(name, 'run = "25ms"') for name in "abc")), "rr")
    assert played.ran() == [
        ("a", 10),
        ("b", 10),
        ("c", 10),
        ("a", 10),
        ("b", 10),
        ("c", 10),
        ("a", 5),
        ("b", 5),
        ("c", 5),
    ]


def test_rr_turn_ends_at_the_first_tick_after_its_slice(play):
    played = play(workload(*(task(name, 'run = "60ms"') for name in "ab")), "rr", slice_ns=11_000_000)
    assert [turn.ran_ms for turn in played.turns] == [20] * 6


@pytest.mark.parametrize("policy", ["rr", "priority", "stride"])
def test_a_task_that_goes_straight_to_an_idle_cpu_has_a_slice_of_the_policy(play, policy):
    """`a` and `b` find CPUs idle and never see enqueue; `late` waits for 5 ms, not for 15."""
    played = play(
        workload(hog("a", 1), hog("b", 1), task("late", 'run = "10ms"', arrival='"5ms"')),
        policy,
        cpus=2,
        slice_ns=10_000_000,
    )
    assert [turn.ran_ms for turn in played.turns[:2]] == [10, 10]
    assert played.turns[2].name == "late"


# ---- priority ---------------------------------------------------------------


def test_priority_order(play):
    levels = {"fifth": 5, "ninth": 9, "none": None, "zero": 0, "third": 3}
    tasks = []
    for name, level in levels.items():
        given = {} if level is None else {"priority": level}
        tasks.append(task(name, 'run = "10ms"', **given))
    played = play(workload(*tasks), "priority")
    assert played.order() == ["zero", "third", "fifth", "none", "ninth"]


def test_priority_preempts_on_the_tick(play):
    played = play(
        workload(
            task("low", 'run = "30ms"', priority=6),
            task("high", 'run = "25ms"', arrival='"3ms"', priority=2),
            task("higher", 'run = "5ms"', arrival='"14ms"', priority=1),
        ),
        "priority",
    )
    assert [(turn.name, turn.start_ns // 1_000_000) for turn in played.turns] == [
        ("low", 0),
        ("high", 10),
        ("higher", 20),
        ("high", 25),
        ("low", 40),
    ]


def test_priority_min_slice_delays_preemption(play):
    played = play(
        workload(
            task("low", 'run = "90ms"', priority=6), task("high", 'run = "5ms"', arrival='"3ms"', priority=2)
        ),
        "priority",
        slice_ns=50_000_000,
        min_slice_ns=25_000_000,
    )
    assert played.turns[1].start_ns == 30_000_000


@pytest.mark.parametrize("levels", [1, 3, 6])
def test_priority_ages_one_level_per_50_ticks(play, levels):
    """It runs when it has reached the level of the hog, for one turn, and again."""
    played = play(
        workload(hog("hog", priority=4), hog("aged", priority=4 + levels), horizon="8s"), "priority"
    )
    starts_ms = played.starts_ms("aged")
    wait_ms = levels * 500
    assert starts_ms[0] == pytest.approx(wait_ms, abs=20)
    assert starts_ms[1] - starts_ms[0] == pytest.approx(wait_ms + 10, abs=20)
    turns = [turn for turn in played.turns if turn.name == "aged"]
    assert all(turn.ran_ms == 10 for turn in turns[:2])


def test_priority_without_ageing_starves(play):
    played = play(workload(hog("hog"), hog("low", priority=6), horizon="5s"), "priority", ageing_ns=0)
    assert played.ran_ms()["low"] == 0


def test_priority_follows_nice_where_none_is_given(play):
    played = play(
        workload(
            task("plain", 'run = "10ms"'),
            task("light", 'run = "10ms"', weight=25),
            task("given", 'run = "10ms"', priority=4),
            task("heavy", 'run = "10ms"', weight=400),
        ),
        "priority",
    )
    assert played.order() == ["heavy", "given", "plain", "light"]


def test_priority_changes_while_running(play):
    played = play(
        workload(
            task("falls", 'run = "10ms"', "set = {priority = 9}", 'run = "20ms"', priority=2),
            task("waits", 'run = "30ms"', priority=7),
        ),
        "priority",
    )
    assert played.order() == ["falls", "waits", "falls"]


def test_priority_short_fifo_serves_level_5_in_order(play):
    jobs = [task(name, 'run = "50ms"') for name in "abc"]
    assert play(workload(*jobs), "priority", short_fifo=1).order() == ["a", "b", "c"]
    assert len(play(workload(*jobs), "priority").order()) == 15


def test_priority_has_the_rules_of_report_1s_code(play):
    high = workload(*(task(name, 'run = "60ms"', priority=2) for name in "ab"))
    assert len(play(high, "priority", slice_ns=20_000_000, high_slice_ns=50_000_000).order()) == 4
    jobs = workload(task("c", 'run = "20ms"', priority=0), *(task(name, 'run = "40ms"') for name in "ab"))
    assert play(jobs, "priority", slice_ns=20_000_000, fifo_first=1).order() == [*"ababababc"]


def test_priority_pid_rule_forces_level_5(play):
    early = [task(f"e{i}", 'run = "10ms"', arrival='"20ms"') for i in range(100)]
    jobs = [*early, task("five", 'run = "30ms"'), task("nine", 'run = "30ms"', priority=9)]
    assert play(workload(*jobs), "priority", pid_rule=1).order()[:3] == ["five", "nine", "five"]


def test_priority_kill_ends_the_run_by_name(play):
    """Report 1 kills after 10,000 ticks; here 2 s, and PID 1 is spared as there."""
    jobs = workload(
        task("init", 'run = "4s"', priority=0), task("old", 'sleep = "1s"', 'run = "3s"', priority=0)
    )
    with pytest.raises(AssertionError, match=r"would kill old\[2\] here: it is older than 2000000000 ns"):
        play(jobs, "priority", kill_ns=2_000_000_000)
    alone = workload(task("init", 'run = "4s"'))
    assert play(alone, "priority", kill_ns=2_000_000_000).finish_ms("init") == 4000
    assert play(jobs, "priority", kill_ns=100_000_000_000).finish_ms("old") == 7000


def test_priority_sched_log_has_tick_pid_priority_and_switches(play):
    """As report 1's sched_log(): a line per switch, and its first call was switch 1."""
    jobs = workload(
        task("low", 'run = "20ms"', priority=7), task("high", 'run = "20ms"', priority=2, arrival='"10ms"')
    )
    played = play(jobs, "priority", sched_log=1)
    assert played.said == [
        "tick 0 pid 1 priority 7 switches 1",
        "tick 1 pid 2 priority 2 switches 2",
        "tick 3 pid 1 priority 7 switches 3",
    ]
    assert play(jobs, "priority").said == []


# ---- lottery ----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(1, 6))
def test_lottery_shares_are_binomial(play, seed):
    """6,000 draws: each share within 3.5 standard deviations of its tickets' part."""
    tickets = {"a": 300, "b": 200, "c": 100}
    played = play(
        workload(*(hog(name, tickets=n) for name, n in tickets.items()), horizon="60s"), "lottery", seed=seed
    )
    for name, share in played.shares().items():
        p = tickets[name] / 600
        assert abs(share - p) < 3.5 * math.sqrt(p * (1 - p) / 6000)


def test_lottery_default_is_100_tickets(play):
    played = play(workload(hog("given", tickets=100), hog("none"), horizon="60s"), "lottery", seed=3)
    assert abs(played.shares()["none"] - 0.5) < 3.5 * 0.5 / math.sqrt(6000)


def test_lottery_tickets_change(play):
    """From half to a tenth of the draws."""
    played = play(
        workload(
            task("changes", 'run = "10s"', "set = {tickets = 50}", 'run = "50s"', tickets=450),
            hog("stays", tickets=450),
            horizon="60s",
        ),
        "lottery",
        seed=1,
    )
    after_ms = 10_000 + played.ran_ms(until_ms=20_000)["stays"] + 500
    share = played.shares(since_ms=max(after_ms, 21_000))["changes"]
    assert abs(share - 0.1) < 3.5 * math.sqrt(0.09 / 3800)


def test_lottery_compensation_restores_the_share(play):
    """`half` gives up the CPU after a quarter of its slice: a fifth, or its half."""
    jobs = workload(
        task("half", 'loop = "forever", do = [{run = "2500us"}, "yield"]'),
        hog("hog"),
        tick="500us",
        horizon="60s",
    )
    plain = play(jobs, "lottery", seed=2).shares()["half"]
    paid = play(jobs, "lottery", seed=2, compensation=1).shares()["half"]
    assert plain == pytest.approx(0.2, abs=0.02)
    assert paid == pytest.approx(0.5, abs=0.02)


def test_lottery_change_of_an_attribute_begins_no_other_slice(play):
    """What it had used before the change was forgotten, and it was paid for the rest, too."""
    changer = task("changer", 'loop = "forever", do = [{run = "9ms"}, {set = {weight = 100}}, {run = "1ms"}]')
    played = play(workload(changer, hog("hog"), horizon="20s"), "lottery", compensation=1)
    assert played.shares()["changer"] == pytest.approx(0.5, abs=0.04)


def test_lottery_lfsr16_draws_what_the_register_says(play):
    """The register, worked out here from its taps, decides whether to switch."""
    played = play(workload(hog("a"), hog("b"), horizon="20s"), "lottery", random_source=1, lfsr_seed=44257)
    ran = []
    for turn in played.turns:
        ran += [turn.name] * round(turn.ran_ms / 10)
    state, expected = 44257, []
    while len(expected) < len(ran):
        bit = 0
        for tap in (16, 14, 13, 11):
            bit ^= state >> (16 - tap) & 1
        state = state >> 1 | bit << 15
        expected.append("a" if state % 200 < 100 else "b")
    assert len(ran) == 2000
    assert ran == expected


def test_lottery_lfsr16_gives_equal_tasks_equal_parts_over_its_period(play):
    """As in the report's table of processes; where the tickets of the one that ran come first they get 2 to 22 %."""
    tasks = [hog(name) for name in "abcdefgh"]
    played = play(
        workload(*tasks, tick="1ms", horizon="65535ms"), "lottery", random_source=1, slice_ns=1_000_000
    )
    assert list(played.shares().values()) == [pytest.approx(1 / 8, rel=0.01)] * 8


def test_lottery_counts_only_tickets_that_can_win_here(play):
    """CPU 0 has two tasks bound to it, CPU 1 one: the other CPU's tickets do not count."""
    played = play(
        workload(
            hog("a", affinity="[0]", tickets=100),
            hog("b", affinity="[0]", tickets=300),
            hog("c", affinity="[1]", tickets=5000),
            horizon="60s",
        ),
        "lottery",
        cpus=2,
        seed=1,
    )
    ran = played.ran_ms()
    assert ran["c"] == 60_000
    assert abs(ran["a"] / 60_000 - 0.25) < 3.5 * math.sqrt(0.25 * 0.75 / 6000)


# ---- mlfq -------------------------------------------------------------------


def test_mlfq_quanta(play):
    """1, 2 and 4 ticks on the way down, then turns of one."""
    played = play(workload(hog("a"), hog("b"), horizon="200ms"), "mlfq")
    assert played.ran() == [
        ("a", 10),
        ("b", 10),
        ("a", 20),
        ("b", 20),
        ("a", 40),
        ("b", 40),
        ("a", 10),
        ("b", 10),
        ("a", 10),
        ("b", 10),
        ("a", 10),
        ("b", 10),
    ]


def test_mlfq_rotate_passes_on_at_every_tick(play):
    played = play(workload(hog("a"), hog("b"), horizon="200ms"), "mlfq", rotate=1)
    assert [turn.ran_ms for turn in played.turns] == [10] * 20


def test_mlfq_new_task_preempts_at_the_tick(play):
    played = play(workload(hog("hog"), task("new", 'run = "15ms"', arrival='"203ms"'), horizon="1s"), "mlfq")
    # At 220 it is at level 2, which is still above the hog.
    assert [(t.start_ns // 1_000_000, t.end_ns // 1_000_000) for t in played.turns if t.name == "new"] == [
        (210, 225)
    ]


def test_mlfq_keeps_an_interactive_task_on_top(play):
    played = play(workload(hog("a"), hog("b"), sleeper("editor", "2ms", "21ms"), horizon="10s"), "mlfq")
    waits_ms = played.latencies_ms("editor")[20:]
    assert len(waits_ms) > 200
    assert waits_ms.max() <= 10


GAMER = workload(hog("honest"), sleeper("gamer", "9ms", "500us"), tick="1ms", horizon="20s")


def test_mlfq_per_visit_is_gamed(play):
    assert play(GAMER, "mlfq").shares(since_ms=1000)["gamer"] > 0.89


def test_mlfq_cumulative_allotment_holds_the_gamer(play):
    """At the bottom both take turns of 10 ms, and the gamer of 9."""
    assert play(GAMER, "mlfq", allotment=1).shares(since_ms=1000)["gamer"] < 0.52


def test_mlfq_boost_ends_starvation(play):
    """Two gamers leave no gap; a boost gives the hog one quantum per period."""
    jobs = workload(hog("hog"), sleeper("gamer", "9ms", "1ms", count=2), tick="1ms", horizon="20s")
    starved = play(jobs, "mlfq").shares(since_ms=1000)["hog"]
    boosted = play(jobs, "mlfq", boost_ns=100_000_000).shares(since_ms=1000)["hog"]
    assert starved < 0.01
    assert boosted == pytest.approx(0.1, abs=0.02)


def test_mlfq_boost_gives_a_whole_allotment(play):
    """At 25 ms `a` has used 5 of the 20 ms of its second level; 10 of the first begin then."""
    jobs = workload(hog("a"), hog("b"), tick="1ms", horizon="50ms")
    played = play(jobs, "mlfq", quantum_ns=10_000_000, boost_ns=25_000_000)
    assert played.ran()[:5] == [("a", 10), ("b", 10), ("a", 5), ("b", 10), ("a", 10)]


# ---- cfs --------------------------------------------------------------------


def test_cfs_shares_follow_weights(play):
    weights = {"a": 400, "b": 200, "c": 100}
    played = play(workload(*(hog(n, weight=w) for n, w in weights.items()), tick="1ms", horizon="30s"), "cfs")
    for name, share in played.shares().items():
        assert share == pytest.approx(weights[name] / 700, abs=0.001)


def test_cfs_shares_across_cpus(play):
    """Three equal tasks on two CPUs: two thirds of a CPU each, with nobody balancing."""
    played = play(workload(*(hog(n) for n in "abc"), tick="1ms", horizon="30s"), "cfs", cpus=2)
    for ran_ms in played.ran_ms().values():
        assert ran_ms == pytest.approx(20_000, rel=0.001)


@pytest.mark.parametrize("cpus", [1, 3])
def test_cfs_lightest_task_is_not_lost_beside_the_heaviest(play, cpus):
    """A tick costs weight 1 as much as 10,000 ticks of weight 10,000: 100 s."""
    played = play(
        workload(hog("light", weight=1), hog("heavy", weight=10_000, count=cpus), horizon="60s"),
        "cfs",
        cpus=cpus,
    )
    assert max(b - a for a, b in itertools.pairwise(played.starts_ms("light"))) < 15_000
    assert played.shares()["light"] < 0.005


def test_cfs_granularity(play):
    """The latency is divided, down to the least granularity; slices end at ticks."""

    def turns(number, **knobs):
        played = play(workload(hog("h", count=number), tick="1ms", horizon="2s"), "cfs", **knobs)
        return {turn.ran_ms for turn in played.turns[number * 3 : -1]}

    assert turns(2) == {3}
    assert turns(6) == {1}
    assert turns(20) == {1}
    assert turns(20, min_granularity_ns=4_000_000) == {4}
    assert turns(2, latency_ns=20_000_000) == {10}


def test_cfs_wake_up_preempts(play):
    jobs = workload(hog("hog", count=3), sleeper("editor", "1ms", "50ms"), horizon="10s")
    eager = play(jobs, "cfs").latencies_ms("editor")
    lazy = play(jobs, "cfs", wakeup_preemption=0).latencies_ms("editor")
    assert eager.max() == 0
    assert lazy.mean() > 2


@pytest.mark.parametrize(("weight", "latency_ms"), [(50, 94), (100, 0), (200, 0)])
def test_cfs_granularity_of_a_wake_up_is_weighted(play, weight, latency_ms):
    """The hog is 6 ms ahead: enough for 4 ms of its own weight, not for 8 of half of it."""
    jobs = workload(
        task("sleeper", 'sleep = "6ms"', 'run = "1ms"', weight=weight), hog("hog"), tick="100ms", horizon="1s"
    )
    knobs = {
        "wakeup_granularity_ns": 4_000_000,
        "sleeper_credit_ns": 0,
        "latency_ns": 1_000_000,
        "min_granularity_ns": 1_000_000,
    }
    assert play(jobs, "cfs", **knobs).latencies_ms("sleeper").tolist() == [latency_ms]


def test_cfs_sleeping_earns_no_more_than_the_credit(play):
    """Back from 10 s of sleep, it may run ahead for a few slices, not for seconds."""
    played = play(
        workload(
            hog("hog"),
            task("back", 'run = "10ms"', 'sleep = "10s"', 'run = "20s"'),
            tick="1ms",
            horizon="14s",
        ),
        "cfs",
    )
    ran = played.ran_ms(since_ms=11_000, until_ms=14_000)
    assert ran["back"] == pytest.approx(ran["hog"], abs=10)


def test_cfs_yield_lets_the_next_one_run(play):
    played = play(
        workload(
            task("polite", 'loop = 100, do = [{run = "100us"}, "yield"]'),
            hog("hog"),
            tick="1ms",
            horizon="500ms",
        ),
        "cfs",
    )
    ran = played.ran_ms(until_ms=100)
    assert ran["polite"] < 10
    yields = [t for t in played.turns if t.name == "polite" and t.why == Stop.YIELDED]
    assert len(yields) > 50
