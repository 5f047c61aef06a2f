# SPDX-License-Identifier: MIT
"""The commands of `schedlab` in named groups, each with an example that `--help` shows.

Read next: app.py, which adds the commands.
"""

from __future__ import annotations

from typing import Any

import typer

from ..errors import UnavailableError

#: Groups in the order of `--help`; an example of each command, of which the group's first is
#: shown beside its name.
GROUPS = {
    "First steps": {"demo": "schedlab demo", "new": "schedlab new mine", "doctor": "schedlab doctor"},
    "Run and compare": {
        "run": "schedlab run mixed -p rr,mlfq --seeds 10 --out out/mixed",
        "compare": "schedlab compare out/before out/after --fail-if 'wakeup_p99 > +5%'",
        "report": "schedlab report out/mixed",
        "check": "schedlab check ./mine.bpf.c --budget 60s",
        "grade": "schedlab grade assignment.toml submissions/*.bpf.c --out out/grades",
        "quiz": "schedlab quiz --questions 8 --format moodle --out quiz.xml",
        "gantt": "schedlab gantt out/mixed/mixed/rr/seed-1 --from 0ms --to 50ms",
        "playground": "schedlab playground mixed -p rr,mlfq --serve",
        "explain": "schedlab explain out/mixed/mixed/rr/seed-1 --task 6",
        "debug": "schedlab debug out/mixed/mixed/rr/seed-1 --at 20ms",
        "trace": "schedlab trace out/mixed/mixed/rr/seed-1 --format perfetto",
    },
    "What there is": {
        "policies": "schedlab policies mlfq",
        "workloads": "schedlab workloads mixed",
        "metrics": "schedlab metrics wakeup_ns_p99",
        "schema": "schedlab schema > run.schema.json",
    },
    "On Linux": {
        "record": "schedlab record --out out/build -- make -j4",
        "replay": "schedlab replay out/build -p eevdf,mlfq",
        "whatif": "schedlab whatif out/build -p eevdf,mlfq,rr --cpus 2,4",
        "tune": "schedlab tune mixed -p mlfq --minimise wakeup_p99 --subject-to 'throughput > -2%'",
        "recommend": "schedlab recommend out/build --metric wakeup_p99",
        "bench": "schedlab bench -p SCHED_OTHER,SCHED_FIFO:10 --runs 10 -- make -j4",
        "verify": "schedlab verify ./mine.bpf.c",
        "load": "sudo schedlab load mlfq --set quantum_ns=3ms --for 30s",
        "top": "sudo schedlab top --export 9101",
        "guest": "sudo schedlab guest -- schedlab bench -p SCHED_OTHER,mlfq -- make -j4",
    },
    "Files of other tools": {
        "import": "schedlab import rt-app load.json --out load.toml",
        "export": "schedlab export rt-app mixed --out mixed.json",
    },
    "In a checkout": {
        "reproduce": "schedlab reproduce 5 --host sim",
        "audit": "schedlab audit 5",
        "kernel": "schedlab kernel --policy mlfq",
        "selfbench": "schedlab selfbench sim --quick",
        "soak": "schedlab soak properties",
    },
}
EXAMPLES = {name: example for group in GROUPS.values() for name, example in group.items()}
#: Those of python/checkout, which the wheel does not have.
OF_CHECKOUT = tuple(GROUPS["In a checkout"])


class Group(typer.core.TyperGroup):
    """Commands in groups, whose Ctrl-C comes to `main`; Typer's own would leave without a word, also with `--json`."""

    def invoke(self, ctx: Any) -> Any:
        """Do the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise typer.Abort() from error

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a command, with its example."""
        command = super().get_command(ctx, cmd_name)
        if command is None and cmd_name in OF_CHECKOUT:
            raise UnavailableError(f"{cmd_name} needs a checkout of schedlab: it is not part of the wheel")
        if command is not None and cmd_name in EXAMPLES:
            # The mark keeps the line whole: it is there to be copied.
            command.epilog = f"Example:\n\n\b\n{EXAMPLES[cmd_name]}"
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the groups; a command that stands in none would not be seen, which a test notices."""
        width = max(map(len, self.commands))
        for title, examples in GROUPS.items():
            commands = [(name, self.commands[name]) for name in examples if name in self.commands]
            if commands:
                with formatter.section(f"{title}, as in '{EXAMPLES[commands[0][0]]}'"):
                    limit = formatter.width - width - 6
                    rows = [(name.ljust(width), each.get_short_help_str(limit)) for name, each in commands]
                    formatter.write_dl(rows)
