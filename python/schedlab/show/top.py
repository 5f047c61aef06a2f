# SPDX-License-Identifier: MIT
"""The lines of `schedlab top`, and the terminal that they are shown in.

Plain lines, as of `load`: drawing them with Rich would cost more CPU time than watching does.

Invariant: however the process ends, SIGKILL included, the terminal is as it was: a small shell waits for that.
Read next: measure/top.py.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import termios
import tty

from ..measure.top import BUCKETS_NS, Picture
from ..stats.sentences import show_time

_ENTER, _LEAVE = "\033[?1049h\033[?25l", "\033[?25h\033[?1049l"


def _time(ns: int | None) -> str:
    return "-" if ns is None else show_time(ns)


def top_lines(picture: Picture, width: int = 80, height: int = 0) -> list[str]:
    """Lines of at most `width` columns and, unless 0, at most `height` of them."""
    room = max(4, (height - 18) // 2) if height else 32
    busiest = sorted(picture.cpus, key=lambda each: (-each.queue_mean, each.number))[:room]
    lines = [f"{'CPU':>4} {'busy':>6} {'':20} {'queue':>6} {'mean':>6}  task"]
    for cpu in sorted(busiest, key=lambda each: each.number):
        bar = "#" * round(min(cpu.busy, 1) * 20)
        task = f"{cpu.name} ({cpu.pid})" if cpu.pid else "idle"
        lines.append(
            f"{cpu.number:>4} {cpu.busy:>6.1%} {bar:20} {cpu.queue:>6} {cpu.queue_mean:>6.2f}  {task}"
        )
    if len(picture.cpus) > room:
        lines.append(f"     {len(picture.cpus) - room} more CPUs, whose queues are shorter")
    counts, total = picture.counts, sum(picture.counts)
    lines += [
        "",
        f"wake-up latency: {total:,} wake-ups, p50 {_time(picture.p50_ns)}, p99 {_time(picture.p99_ns)}",
    ]
    filled = [index for index, count in enumerate(counts) if count]
    for index in range(filled[0], filled[-1] + 1) if filled else ():
        label = f"<= {_time(BUCKETS_NS[index])}" if index < len(BUCKETS_NS) else f"> {_time(BUCKETS_NS[-1])}"
        lines.append(f"{label:>11} {counts[index]:>8,} {'#' * -(-counts[index] * 50 // max(counts))}")
    lines += ["", f"{'waited':>7}  task"]
    lines += [f"{share:>7.1%}  {name} ({pid})" for pid, name, share in picture.waiters[: 5 if height else 10]]
    ext = picture.sched_ext
    lines.append("")
    if ext.state is None:
        lines.append("sched_ext: not in this kernel")
    else:
        lines.append(f"sched_ext: {ext.name or 'no policy'}, {ext.state}")
        lines += [f"  {name} {value:,}" for name, value in ext.counters if value]
    lines.append(f"events lost: {picture.n_lost:,}; cost: {picture.cost:.2%} of a CPU")
    if height and len(lines) > height:
        lines[height - 1 : -1] = []
    return [line[:width] for line in lines]


class Screen(contextlib.AbstractContextManager["Screen"]):
    """A terminal whose keys come at once; as it was when this, or the process, ends."""

    def __enter__(self) -> Screen:
        saved = subprocess.run(["stty", "-g"], stdin=sys.stdin, capture_output=True, text=True, check=True)
        # In a session of its own, so that Ctrl-C does not end it; the end of its input does.
        self._keeper = subprocess.Popen(
            ["sh", "-c", f"trap '' HUP; read _; stty \"$0\" <&1; printf '{_LEAVE}'", saved.stdout.strip()],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        tty.setcbreak(sys.stdin, termios.TCSANOW)
        sys.stdout.write(_ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()
        assert self._keeper.stdin
        self._keeper.stdin.close()
        self._keeper.wait()

    def draw(self, lines: list[str]) -> None:
        """Show lines in place of the last ones."""
        sys.stdout.write("\033[H" + "\n".join(f"{line}\033[K" for line in lines) + "\033[J")
        sys.stdout.flush()

    def key(self, seconds: float) -> str:
        """A key that is pressed within so long, or nothing."""
        ready, _, _ = select.select([sys.stdin], [], [], max(seconds, 0))
        return (os.read(sys.stdin.fileno(), 1).decode(errors="replace") or "q") if ready else ""
