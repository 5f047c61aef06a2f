# SPDX-License-Identifier: MIT
"""What the scheduler does while a command is measured: wake-up latency, migrations, waiting.

These take a recording, which costs a little; so they come from further runs, after
the samples. A recording that is not whole gives no figures and says why.

Read next: hosts/linux/recorder.py; bench.py, which asks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import RecordError
from ..hosts.linux.launch import Command, Launcher
from ..hosts.linux.machine import steal_by_cpu, steal_since
from ..hosts.linux.recorder import Recorder, convert_events
from ..metrics.dictionary import compute_metrics
from ..metrics.disturbance import disturbance
from ..metrics.timeline import Timeline
from ..records.file import read_records

#: The keepers of the launcher are its children, the commands theirs.
GENERATION_OF_COMMANDS = 2
#: Metrics of the dictionary that bench shows beside its own figures.
METRICS = (
    "wakeup_ns_mean", "wakeup_ns_p50", "wakeup_ns_p95", "wakeup_ns_p99", "wakeup_ns_max", "wakeups",
    "migrations", "switches_voluntary", "switches_involuntary", "tasks", "starvation_ns",
)  # fmt: skip


class BenchRecorder:
    """Records runs of a launcher. UnavailableError, with the hint: this machine or user may not record."""

    def __init__(self, launcher: Launcher):
        self._launcher = launcher
        self._recorder = Recorder()

    def __enter__(self) -> BenchRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        self._recorder.close()

    def run(self, commands: Sequence[Command], *, timeout_ns: int) -> dict[str, Any]:
        """Run commands once, and say what the scheduler did with all their tasks.

        The first is the measured one; after `timeout_ns` all are ended. Returns `wall_ns` of the first,
        `recorder_cpu_ns`, `events`; `problem`, None where all is well; then `METRICS`, and `run_queue_ns`,
        the time that tasks waited for a CPU, all together; and `disturbance`, what others had of the CPUs,
        as `metrics.disturbance` has it. Times in nanoseconds.
        """
        with tempfile.TemporaryDirectory(prefix="schedlab-bench-") as name:
            events, records = Path(name) / "events.slev", Path(name) / "records.slr"
            steal = steal_by_cpu()
            self._recorder.follow(events, pid=self._launcher.pid, generation=GENERATION_OF_COMMANDS)
            report = self._launcher.run(commands, timeout_ns=timeout_ns)["commands"][0]
            captured = self._recorder.stop()
            found = {
                "wall_ns": report["end_ns"] - report["start_ns"],
                "events": captured.n_events,
                "recorder_cpu_ns": captured.cpu_ns,
                "problem": None,
            }
            try:
                return found | _figures(events, records, captured.write_error, steal_since(steal))
            except RecordError as error:
                return found | {"problem": str(error)}


def _figures(
    events: Path, records: Path, write_error: str | None, steal_ns: dict[int, int]
) -> dict[str, Any]:
    """Metrics of one recording."""
    if write_error:
        raise RecordError(f"the recording could not be written: {write_error}; make room")
    converted = convert_events(events, records)
    if converted.n_lost:
        raise RecordError(f"the kernel had no room for {converted.n_lost} events")
    timeline = Timeline(read_records(records))
    metrics = compute_metrics(timeline)
    waited_ns = int(metrics.tasks["wait_ns"].sum())
    return {"run_queue_ns": waited_ns, "disturbance": disturbance(timeline, steal_ns=steal_ns)} | {
        name: metrics.run[name] for name in METRICS
    }
