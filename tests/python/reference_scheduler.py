# SPDX-License-Identifier: MIT
"""A scheduler simple enough to be believed: one queue, in Python, no cleverness.

Tests compare schedlab's metrics and consistency check with what this makes, so it
shares nothing with them but the constants of the record format. Tasks that
arrive or wake at the moment at which another's turn ends queue up before it.
"""

from __future__ import annotations

import heapq
from collections import deque
from itertools import count

from schedlab.records.file import Kind, Stop


def schedule(tasks, *, n_cpus=1, slice_ns=None, horizon_ns=None):
    """Run tasks in the order of one queue, each for a slice, or until it blocks: the events, and the end of the run.

    A task is (arrival_ns, phases), a phase ("run", ns) or ("sleep", ns); pids count from 1.
    """
    return _Schedule(tasks, n_cpus, slice_ns, horizon_ns).run()


class _Schedule:
    ARRIVES, WAKES, TURN_ENDS = range(3)

    def __init__(self, tasks, n_cpus, slice_ns, horizon_ns):
        self.phases = {pid: deque(phases) for pid, (_, phases) in enumerate(tasks, 1)}
        self.slice_ns, self.horizon_ns = slice_ns, horizon_ns
        self.events, self.queue = [], deque()
        self.running = [None] * n_cpus  # (pid, since, whether the phase ends with the turn)
        self.last_cpu = {}
        self.number = count()
        self.agenda = [
            (arrival, self.ARRIVES, next(self.number), pid) for pid, (arrival, _) in enumerate(tasks, 1)
        ]
        heapq.heapify(self.agenda)

    def run(self):
        now = 0
        while self.agenda:
            if self.horizon_ns is not None and self.agenda[0][0] >= self.horizon_ns:
                return self.cut_off()
            now = self.agenda[0][0]
            while self.agenda and self.agenda[0][0] == now:
                _, what, _, subject = heapq.heappop(self.agenda)
                if what == self.TURN_ENDS:
                    self.end_turn(now, subject)
                else:
                    kind = Kind.ARRIVE if what == self.ARRIVES else Kind.WAKE
                    self.events.append((now, subject, 0, kind, 0, 0))
                    self.begin_phase(now, subject, 0, None)
            self.dispatch(now)
        return self.events, now

    def cut_off(self):
        for cpu, turn in enumerate(self.running):
            if turn:
                pid, since, _ = turn
                ran = self.horizon_ns - since
                self.events.append((self.horizon_ns, pid, cpu, Kind.STOP, Stop.HORIZON, ran))
        return self.events, self.horizon_ns

    def begin_phase(self, now, pid, cpu, ran):
        """Queue the task, put it to sleep or end it; `ran` is None when it was not running."""
        phases = self.phases[pid]
        if phases and phases[0][0] == "run":
            why = Stop.PREEMPTED
            self.queue.append(pid)
        elif phases and phases[0][1] == 0 and ran is None:
            phases.popleft()
            return self.begin_phase(now, pid, cpu, ran)
        elif ran is None:
            # It must run once to come to its sleep or its end.
            phases.appendleft(("run", 0))
            self.queue.append(pid)
            return None
        elif phases:
            why = Stop.BLOCKED
            _, sleep = phases.popleft()
            heapq.heappush(self.agenda, (now + sleep, self.WAKES, next(self.number), pid))
        else:
            why = Stop.EXITED
        if ran is not None:
            self.events.append((now, pid, cpu, Kind.STOP, why, ran))
        return None

    def end_turn(self, now, cpu):
        pid, since, is_whole = self.running[cpu]
        self.running[cpu] = None
        phases = self.phases[pid]
        if is_whole:
            phases.popleft()
        else:
            phases[0] = ("run", phases[0][1] - (now - since))
        self.begin_phase(now, pid, cpu, now - since)

    def dispatch(self, now):
        for cpu, turn in enumerate(self.running):
            if turn or not self.queue:
                continue
            pid = self.queue.popleft()
            if self.last_cpu.get(pid, cpu) != cpu:
                self.events.append((now, pid, cpu, Kind.MIGRATE, 0, self.last_cpu[pid]))
            self.last_cpu[pid] = cpu
            left = self.phases[pid][0][1]
            turn_ns = left if self.slice_ns is None else min(left, self.slice_ns)
            self.running[cpu] = (pid, now, turn_ns == left)
            self.events.append((now, pid, cpu, Kind.RUN, 0, 0))
            heapq.heappush(self.agenda, (now + turn_ns, self.TURN_ENDS, next(self.number), cpu))


def work_of(tasks):
    """CPU time that each task declares, in nanoseconds."""
    return [sum(ns for verb, ns in phases if verb == "run") for _, phases in tasks]
