# SPDX-License-Identifier: MIT
"""`schedlab load`: a policy in this machine's own kernel, until Ctrl-C.

Must stay true: the policy is unloaded on every way out.
Read next: hosts/linux/load.py.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Annotated, Any

import typer

from ..errors import EXIT_CHECK_FAILED, UsageError
from .answer import print_json
from .options import JsonOption, length_ns


def load(
    policy: Annotated[str, typer.Argument(help="A name, or a C file.")],
    settings: Annotated[
        list[str], typer.Option("--set", metavar="KNOB=VALUE", help="Such as slice_ns=3ms.")
    ] = [],  # noqa: B006, Typer copies it
    partial: Annotated[
        bool, typer.Option("--partial", help="Only tasks that ask for it (class SCHED_EXT), not all.")
    ] = False,
    time_limit: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Unload it after so long; default: on Ctrl-C.")
    ] = None,
    guards: Annotated[
        list[str],
        typer.Option(
            "--guard",
            metavar="BOUND",
            help="Unload it when this is broken, such as 'wakeup_p99 < 5ms'; may be given again.",
        ),
    ] = [],  # noqa: B006, Typer copies it
    as_json: JsonOption = False,
) -> None:
    """Load a policy into this machine's kernel, show what it does, unload it on Ctrl-C."""
    from ..hosts.linux.load import LoadedPolicy, prepare_loader
    from ..measure.guard import HEARTBEAT_MS, parse_bound

    bounds = [parse_bound(text) for text in guards]
    limit_ns = None if time_limit is None else length_ns("--for", time_limit)
    built = _build(policy, settings)
    loader = prepare_loader()
    every_ms = 1000 if limit_ns is None else max(1, min(1000, limit_ns // 1_000_000))
    start_ns = time.monotonic_ns()
    shown = _Shown(is_silent=as_json)
    with (
        _guard(bounds) as canary,
        LoadedPolicy(
            built, loader, is_partial=partial, every_ms=every_ms, heartbeat_ms=HEARTBEAT_MS if bounds else 0
        ) as loaded,
    ):
        if loaded.note:
            print(f"note: {loaded.note}", file=sys.stderr)
        if canary:
            canary.begin(loaded)
        try:
            for name in loaded.frames():
                if name == "attached":
                    start_ns = time.monotonic_ns()
                    shown.begin(built.policy.name, is_partial=partial)
                elif name == "counts":
                    shown.counts(loaded.answer)
                    if limit_ns is not None and time.monotonic_ns() - start_ns >= limit_ns:
                        break
        except KeyboardInterrupt:
            pass
        answer = loaded.close()
        held_ns = time.monotonic_ns() - start_ns
    guard = canary.as_json() if canary else None
    if guard and answer.silent_ms and not guard["reason"]:
        guard["reason"] = f"the guard was silent for {answer.silent_ms} ms"
    if as_json:
        print_json(_summary(built, answer, held_ns, is_partial=partial) | {"guard": guard})
    else:
        shown.end(answer, held_ns, guard)
    if answer.error or (guard and guard["reason"]):
        raise typer.Exit(EXIT_CHECK_FAILED)


def _guard(bounds: list[Any]) -> Any:
    """What watches the policy; nothing without bounds."""
    from ..measure.guard import Canary

    return Canary(bounds) if bounds else contextlib.nullcontext()


def _build(name: str, settings: list[str]) -> Any:
    """The policy with its knobs, as Linux takes it."""
    from ..hosts.guest.build import toolchain
    from ..policy.build import build_policy
    from ..policy.find import load_policy, parse_settings

    policy = load_policy(name)
    given = [each if "." in each.partition("=")[0] else f"{policy.name}.{each}" for each in settings]
    variants = list(parse_settings(given, {policy.name: policy}).values())
    if len(variants) > 1:
        raise UsageError("--set: a kernel has room for one policy; give each knob one value")
    return build_policy(policy, variants[0].values, engine="bpf", toolchain=toolchain)


def _summary(built: Any, answer: Any, held_ns: int, *, is_partial: bool) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "policy": built.policy.name, "knobs": built.values, "is_partial": is_partial,
        "is_loaded": answer.is_loaded, "held_ns": held_ns, "ended_by": answer.ended_by,
        "reason": answer.disabled_reason, "error": answer.error,
        "verifier_instructions": answer.instructions,
        "calls": {name: {"calls": calls, "ns": ns} for name, (calls, ns) in answer.counts.items()},
        "events": answer.events,
    }  # fmt: skip


class _Shown:
    """What a person sees: a line per callback, written over where that is possible."""

    def __init__(self, *, is_silent: bool):
        self.is_silent = is_silent
        self.before: dict[str, tuple[int, int]] = {}
        self.before_ns = time.monotonic_ns()
        self.n_lines = 0

    def begin(self, name: str, *, is_partial: bool) -> None:
        """The policy has the CPUs."""
        if not self.is_silent:
            whose = "tasks of the class SCHED_EXT" if is_partial else "all ordinary tasks of this machine"
            print(f"{name} schedules {whose}; Ctrl-C unloads it", flush=True)
            self.before_ns = time.monotonic_ns()

    def counts(self, answer: Any) -> None:
        """Calls since the last time."""
        now_ns = time.monotonic_ns()
        seconds = max(now_ns - self.before_ns, 1) / 1e9
        lines = [f"{'callback':28}{'calls/s':>12}{'ns per call':>14}"]
        for name, (calls, ns) in answer.counts.items():
            calls_before, ns_before = self.before.get(name, (0, 0))
            new = calls - calls_before
            cost = f"{(ns - ns_before) / new:,.0f}" if new else "-"
            lines.append(f"{name:28}{new / seconds:>12,.0f}{cost:>14}")
        lines += [f"{name}: {count:,}" for name, count in answer.events.items() if count]
        self.before, self.before_ns = dict(answer.counts), now_ns
        if self.is_silent:
            return
        if self.n_lines and sys.stdout.isatty():
            sys.stdout.write(f"\033[{self.n_lines}A\033[J")
        print("\n".join(lines), flush=True)
        self.n_lines = len(lines)

    def end(self, answer: Any, held_ns: int, guard: dict[str, Any] | None) -> None:
        """Why it is over."""
        if not answer.is_loaded:
            from ..hosts.guest.verify import reason_of

            print(f"error: the kernel refuses {answer.name}:\n{reason_of(answer.error)}", file=sys.stderr)
            return
        print(
            f"unloaded after {held_ns / 1e9:.1f} s, {answer.ended_by or 'before it was attached'}: "
            f"{answer.disabled_reason or 'no reason given'}"
        )
        if guard:
            worst = ", ".join(f"{name} {ns / 1e6:.3g} ms" for name, ns in guard["worst_ns"].items()) or "none"
            print(
                f"guard {', '.join(guard['bounds'])}: {guard['wakeups']:,} wake-ups in {guard['windows']} "
                f"windows, {guard['lost']:,} events lost; worst: {worst}"
            )
            if guard["reason"]:
                print(f"error: unloaded by the guard: {guard['reason']}", file=sys.stderr)
        if answer.error:
            print(f"error: {answer.error}", file=sys.stderr)
