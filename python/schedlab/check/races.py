# SPDX-License-Identifier: MIT
"""Draw how CPUs interleave, and show which lines did.

Invariant: an interleaving is a string, in a `World` as in a file; the same string gives
the same run.
Read next: policy/races.py, how a policy is compiled for that; hosts/check/interleave.c; trial.py, the caller.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

#: Switches that an interleaving may have: most races need one or two.
NR_SWITCHES = ("1", "2", "3", "5", "20", "200", "2000")
#: Depths of PCT: how many orders between two CPUs have to be hit for a bug to show.
DEPTHS = ("pct1", "pct2", "pct3")
#: A list of more switches than these is tried to be replaced by one of so many seeds.
NR_SWITCHES_SOUGHT = 2
NR_SEEDS = 24
COLUMN_CHARACTERS = 44
_STEP = re.compile(
    r"(CPU \d+)(?:, in ops\.(\w+)\(\) for ([^,;]+\[\d+\]|-\[0\]),)? "
    r"(read \d+|wrote \d+|took [^;]+?|waits for [^;]+?) at ([^;,\s]+)"
)


def draw_interleaving(rng: random.Random) -> str:
    """Draw the seed of an interleaving, and how many switches it has at most, or PCT's depth."""
    return f"{rng.randrange(1 << 32)}:{rng.choice(NR_SWITCHES + DEPTHS)}"


def strategy(interleaving: str) -> str:
    """By which strategy switches were drawn; empty: there were none, or a list of them."""
    if "@" in interleaving:
        return "every schedule of a window"
    seed, _, how = interleaving.partition(":")
    if not how:
        return ""
    if how.startswith("pct"):
        return f"PCT, depth {how[3:]}"
    return f"{'rare switches' if int(seed) % 2 else 'POS'}, at most {how}"


def n_switches(interleaving: str) -> int:
    """How many switches a list has; 0 for a seed."""
    return interleaving.count(">")


def fewer_switches(interleaving: str) -> Iterator[str]:
    """Lists with some of the switches left out, those that save most first; then seeds of fewer."""
    switches = interleaving.split(",") if n_switches(interleaving) else []
    length = len(switches) // 2
    while length:
        for at in range(0, len(switches), length):
            if rest := switches[:at] + switches[at + length :]:
                yield ",".join(rest)
        length //= 2
    for nr in range(1, min(len(switches), NR_SWITCHES_SOUGHT + 1)):
        for seed in range(NR_SEEDS):
            yield f"{seed}:{nr}"


def columns(text: str, policy: Path) -> str:
    """Show a lost update or a deadlock as columns of source lines, one for each CPU; empty for other texts.

    Lines of other files than the policy are named only.
    """
    steps = [found.groups() for found in _STEP.finditer(text)]
    cpus = [*dict.fromkeys(cpu for cpu, *_ in steps)]
    source = policy.read_text(encoding="utf-8", errors="replace").splitlines()
    heads = {cpu: f"ops.{callback}() for {task}" for cpu, callback, task, *_ in steps if callback}
    rows = [*({cpu: cpu for cpu in cpus}, heads)] if cpus else []
    for cpu, _, _, verb, place in steps:
        file, _, line = place.rpartition(":")
        if file == policy.name and int(line) <= len(source):
            place = f"{line}: {source[int(line) - 1].strip()}"
        rows += [{cpu: place}, {cpu: f"    {verb}"}]
    return "\n".join(
        "".join(f"{row.get(cpu, ''):{COLUMN_CHARACTERS}}" for cpu in cpus).rstrip() for row in rows
    )
