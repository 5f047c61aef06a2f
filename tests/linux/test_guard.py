# SPDX-License-Identifier: MIT
"""A guard's bounds, and what it makes of events; with a loaded policy it is tried in test_load.py."""

from __future__ import annotations

import pytest

from linux import event_files as ev
from linux.sums_oracle import sums_of
from schedlab.errors import UsageError
from schedlab.measure.guard import Watch, parse_bound
from schedlab.measure.live import read_sums

MS = 1_000_000


@pytest.mark.parametrize("text, message", [
    ("wakeup_p99", "write METRIC < TIME"), ("p99 < 5ms", "metrics are wakeup_p50"), ("wakeup_p99 < 5", "unit"),
    ("wakeup_p99 < 0ms", "longer than 0"), ("", "write METRIC"), ("wakeup_p99 < 5ms < 6ms", "--guard"),
])  # fmt: skip
def test_a_bound_that_means_nothing_is_refused(text, message):
    with pytest.raises(UsageError, match=message):
        parse_bound(text)


def read(tmp_path, *events):
    """Sums of each interval."""
    return [read_sums(each) for each in sums_of(ev.write(tmp_path / "x.slev", [*events]))]


def test_wake_ups_are_paired_with_the_switch_to_the_task_across_intervals(tmp_path):
    """Pid 10 waits over the end of the first; 11 ran unseen; 12 waits; pid 0 is no task."""
    events = [ev.event(ev.WAKING, 100, 10), ev.event(ev.WAKING, 110, 11), ev.event(ev.SYNC, 200),
              ev.event(ev.SWITCH, 250, 0, 10)]  # fmt: skip
    # CPU 1's events come after those of CPU 0, whatever their time.
    events += [ev.event(ev.SWITCH, 300, 11, 0, ev.BLOCKED), ev.named(12, b"x" * 16), ev.event(ev.NEW, 310, 12, 10),
               ev.event(ev.SWITCH, 280, 10, 13, ev.BLOCKED, cpu=1), ev.event(ev.WAKING, 260, 13, 10, cpu=1),
               ev.event(ev.SYNC, 400)]  # fmt: skip
    first, second = read(tmp_path, *events)
    assert (first.latencies.total(), first.ages, first.oldest_ns) == (0, {92: 1, 100: 1}, 100)
    assert (second.latencies, second.sum_ns) == ({20: 1, 152: 1}, 170)
    assert (second.ages, second.oldest_ns) == ({92: 1}, 90)


def test_after_lost_events_no_wait_is_made_up(tmp_path):
    _, sums = read(tmp_path, ev.event(ev.WAKING, 100, 10), ev.event(ev.SYNC, 200), ev.event(ev.LOST, 300, 0, 7),
                   ev.event(ev.SWITCH, 300, 0, 10), ev.event(ev.SYNC, 400))  # fmt: skip
    assert (sums.n_lost, sums.latencies.total(), sums.ages.total()) == (7, 0, 0)


def rounds(latency_ns, n_rounds=10, each_ms=50, n_wakes=10):
    """What a recorder writes, round by round: tasks that are woken and run a little later."""
    for number in range(1, n_rounds):
        start = number * each_ms * MS
        events = []
        for wake in range(n_wakes):
            at, pid = start + wake * MS, 10 + wake
            events += [ev.event(ev.WAKING, at, pid), ev.event(ev.SWITCH, at + latency_ns, 0, pid),
                       ev.event(ev.SWITCH, at + latency_ns + 1, pid, 0, ev.BLOCKED)]  # fmt: skip
        yield from (*events, ev.event(ev.SYNC, start + each_ms * MS))


def test_a_window_that_is_slow_breaks_the_bound(tmp_path):
    watch = Watch([parse_bound("wakeup_p99 < 5ms")])
    assert all(watch.feed(sums) is None for sums in read(tmp_path, *rounds(4 * MS)))
    assert 4 * MS <= watch.worst["wakeup_p99"] < 4.016 * MS
    watch = Watch([parse_bound("wakeup_max < 1s"), parse_bound("wakeup_p99 < 5ms")])
    broken = [found for sums in read(tmp_path, *rounds(6 * MS)) if (found := watch.feed(sums))]
    assert broken[0]["metric"] == "wakeup_p99" and broken[0]["wakeups"] >= 20
    assert 6 * MS <= broken[0]["value_ns"] < 6.024 * MS


def test_a_starved_task_breaks_the_bound_though_it_never_runs(tmp_path):
    watch = Watch([parse_bound("wakeup_max < 300ms")])
    syncs = [ev.event(ev.SYNC, each * 50 * MS) for each in range(1, 12)]
    found = [watch.feed(sums) for sums in read(tmp_path, ev.event(ev.WAKING, 1, 10), *syncs)]
    (broken,) = [each for each in found if each][:1]
    assert broken["waiting"] == 1 and 300 * MS < broken["value_ns"] < 500 * MS
