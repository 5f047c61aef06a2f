# SPDX-License-Identifier: MIT
"""Run a policy with CPUs that interleave, and show which lines did.

        policy -> compiled with -fsanitize=thread, without its runtime -> hosts/check
                                                                             |
        "CPU 0 read 3 at <0x11c2>; CPU 1 ..."  -> source lines -> two columns

Invariant: an interleaving is a string, in a `World` as in a file; the same string gives
the same run.
Read next: hosts/check/interleave.c; trial.py, the caller.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from .. import paths
from ..hosts.host import Job, Outcome
from ..hosts.process import Supervised
from ..hosts.sim import SimSession
from ..policy.build import BuiltPolicy, compile_policy, find_compiler
from ..policy.elf import ElfFile
from ..policy.invariants import CHECK_FLAG
from ..tools import source_line

#: The runtime that the sanitizer would bring is hosts/check.
FLAGS = ("-fsanitize=thread", "-nodefaultlibs")
#: It would leave out the read of `n++`.
FLAGS_CLANG = ("-mllvm", "-tsan-instrument-read-before-write=1")
#: Switches that an interleaving may have: most races need one or two.
NR_SWITCHES = ("1", "2", "3", "5", "20", "200", "2000")
#: Depths of PCT: how many orders between two CPUs have to be hit for a bug to show.
DEPTHS = ("pct1", "pct2", "pct3")
#: A list of more switches than these is tried to be replaced by one of so many seeds.
NR_SWITCHES_SOUGHT = 2
NR_SEEDS = 24
COLUMN_CHARACTERS = 44
_ADDRESS = re.compile(r"<(0x[0-9a-f]+)>")
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


def compile_for_races(built: BuiltPolicy, flags: Iterable[str] = ()) -> BuiltPolicy:
    """Compile a policy so that its accesses to memory are seen, with these flags for what is held."""
    for_compiler = FLAGS_CLANG if "clang" in find_compiler()[1] else ()
    more_flags = dict.fromkeys((CHECK_FLAG, *flags, *FLAGS, *for_compiler))
    return replace(built, shared_object=compile_policy(built.policy, more_flags=(*more_flags,)))


class InterleavingSession(SimSession):
    """A session with the simulator whose CPUs interleave."""

    def run(self, job: Job) -> Outcome:
        """What it said, with source lines."""
        outcome = super().run(job)
        if outcome.error is None:
            return outcome
        return replace(outcome, error=Places(job.policy.shared_object).in_text(outcome.error))

    def _start(self, policy: BuiltPolicy) -> Supervised:
        """A server that has this policy; SchedlabError where it cannot be started."""
        words = [str(paths.interleaver()), "--serve", "--policy", str(policy.shared_object)]
        return Supervised(words, has_input=True)


class Places:
    """Names of a compiled policy's addresses; each is looked for once."""

    def __init__(self, shared_object: Path):
        self._file = shared_object
        self._known: dict[str, str] = {}

    def in_text(self, text: str) -> str:
        """A text with names in place of `<0x...>`."""
        return _ADDRESS.sub(lambda found: self._name(found[1]), text)

    def _name(self, address: str) -> str:
        """A variable, or the source line of an instruction; the address where neither is known."""
        if address not in self._known:
            self._known[address] = self._find(address)
        return self._known[address]

    def _find(self, address: str) -> str:
        """Ask the file's tables."""
        if variable := ElfFile(self._file).object_at(int(address, 16)):
            return variable
        return source_line(self._file, address) or address


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
