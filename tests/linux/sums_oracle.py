# SPDX-License-Identifier: MIT
"""What hosts/linux/record/sums.c has to find in a file of events, by a walk in order of time with nothing else in mind."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict

from linux import event_files as ev
from schedlab.paths import recorder

STATES = (ev.SWITCH, ev.WAKING, ev.WAKEUP, ev.NEW, ev.MIGRATE, ev.EXIT, ev.RUNTIME)


def sums_of(path):
    """What the recorder says of each interval of a file."""
    done = subprocess.run([recorder(), "sums", str(path)], capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Oracle:
    """Each task sleeps, waits (on a CPU, since when, woken or preempted) or runs on a CPU."""

    def __init__(self):
        self.waits, self.runs, self.rest = {}, {}, []  # pid: [cpu, since, woken]; pid: [cpu, woken meanwhile]
        self.last_cpu = defaultdict(int)
        self.begin_ns = self.n_lost = self.blind_ns = 0

    def interval(self, events):
        """Events up to a SYNC; what was: latencies, waits by CPU and pid, queues, who runs, how many were woken and wait."""
        self.latencies, self.cpu_ns, self.pid_ns = [], defaultdict(int), defaultdict(int)
        end_ns = events[-1][4]
        losses = [each for each in events if each[2] == ev.LOST]
        self.n_lost += sum(each[5] for each in losses)
        self.blind_ns = max([self.blind_ns, *(each[4] for each in losses)])
        if self.blind_ns > self.begin_ns:
            self.waits, self.runs = {}, {}
        timed = sorted(self.rest + [each for each in events if each[2] in STATES], key=lambda each: each[4])
        self.rest = [each for each in timed if each[4] > end_ns]
        for event in timed:
            if self.blind_ns < event[4] <= end_ns:
                self.step(*event)
        for pid in [*self.waits]:
            self.count(pid, end_ns)
        current = {cpu: pid for pid, (cpu, _) in self.runs.items()}
        for pid, (cpu, _, woken) in sorted(self.waits.items(), key=lambda pair: pair[1][1]):
            if not woken and cpu not in {c for c, _ in self.runs.values()}:
                current[cpu] = pid
        queue = defaultdict(int)
        for cpu, *_ in [*self.waits.values(), *self.runs.values()]:
            queue[cpu] += 1
        ages = sorted(end_ns - woken for _, _, woken in self.waits.values() if woken)
        self.begin_ns = end_ns
        return (sorted(self.latencies), {k: v for k, v in self.cpu_ns.items() if v},
                {k: v for k, v in self.pid_ns.items() if v}, dict(queue), current, ages)  # fmt: skip

    def count(self, pid, t_ns):
        cpu, since, woken = self.waits[pid]
        ns = max(t_ns - max(since, self.begin_ns), 0)
        self.cpu_ns[cpu] += ns
        self.pid_ns[pid] += ns
        self.waits[pid] = [cpu, max(since, t_ns), woken]

    def leave(self, pid, t_ns):
        """From whatever it does to sleep."""
        if pid in self.waits:
            self.count(pid, t_ns)
            del self.waits[pid]
        self.runs.pop(pid, None)

    def vanish(self, pid):
        """It ran, and has left unseen: woken meanwhile, it waits since then."""
        cpu, woken = self.runs.pop(pid)
        if woken:
            self.waits[pid] = [cpu, woken, woken]

    def run(self, pid, cpu, t_ns):
        if self.runs.get(pid, [-1])[0] == cpu:
            return
        for other in [each for each, (where, _) in self.runs.items() if where == cpu or each == pid]:
            self.vanish(other)
        if pid:
            woken = self.waits[pid][2] if pid in self.waits else 0
            self.leave(pid, t_ns)
            if woken and t_ns >= woken:
                self.latencies.append(t_ns - woken)
            self.runs[pid], self.last_cpu[pid] = [cpu, 0], cpu

    def step(self, pid, cpu, kind, flags, t_ns, other, value):
        if kind == ev.SWITCH:
            for each in [p for p, (where, _) in self.runs.items() if where == cpu and p != pid]:
                self.vanish(each)
            self.leave(pid, t_ns)
            if pid and not value & 0xFF:
                self.waits[pid] = [cpu, t_ns, 0]
            self.run(other, cpu, t_ns)
        elif kind == ev.RUNTIME and not flags & ev.ELSEWHERE:
            self.run(pid, cpu, t_ns - other)
        elif kind == ev.RUNTIME and pid in self.waits:
            self.run(pid, self.waits[pid][0], t_ns - other)
        elif kind == ev.EXIT:
            self.leave(pid, t_ns)
        elif kind in (ev.WAKING, ev.NEW):
            if kind == ev.NEW:
                self.runs.pop(pid, None)
            if pid in self.runs:
                self.runs[pid][1] = self.runs[pid][1] or t_ns
                return
            if pid in self.waits:
                self.count(pid, t_ns)
            _, since, woken = self.waits.get(pid, (0, t_ns, 0))
            self.waits[pid] = [value, since, woken or t_ns]
        elif kind in (ev.WAKEUP, ev.MIGRATE) and pid in self.waits:
            self.count(pid, t_ns)
            self.waits[pid][0] = value
