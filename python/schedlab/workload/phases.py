# SPDX-License-Identifier: MIT
"""What a task does: read the `phases` of a `[[task]]`.

A phase is a table with one verb, ``{run = "5ms"}``, or a bare word for a verb
without arguments, ``"yield"``. Every verb of program.h has its spelling here.

Must stay true: a phase that is wrong is noted and left out, and reading goes on,
so that one run of the tool shows all mistakes of a file.
Read next: checks.py, which looks at all tasks together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..calibration import WORK_KERNELS
from ..errors import UnitError, did_you_mean
from ..model import CPUS_MAX
from ..toml_file import Place, Source
from ..units import TIME_MAX_NS, U32_MAX, parse_count, parse_duration, parse_size
from .distributions import Distribution, looks_like_distribution, parse_distribution

#: Bytes per read or write call where a phase does not say.
CHUNK_BYTES_DEFAULT = 4096

#: What a timer does when it is due already: start again from now, or catch up.
LATE = ("restart", "keep")

#: Attributes of a task: name -> (enum task_attr_key, lowest, highest, how to read).
ATTRIBUTES: dict[str, tuple[int, int, int, str]] = {
    "priority": (0, -(2**31), 2**31 - 1, "count"),
    "tickets": (1, 1, U32_MAX, "count"),
    "credits": (2, -(2**31), 2**31 - 1, "count"),
    "cap": (3, 0, U32_MAX, "percent"),
    "group": (4, 0, U32_MAX, "count"),
    "deadline": (5, 0, TIME_MAX_NS, "time"),
    "burst": (6, 0, TIME_MAX_NS, "time"),
    "weight": (7, 1, 10_000, "count"),
    "nice": (7, -20, 19, "count"),
}


@dataclass(frozen=True)
class Phase:
    """One step of a task."""

    verb: str  #: A key of `VERBS`.
    number: str  #: Where it stands, for messages: ``"3"``, or ``"3.2"`` inside a loop.
    at: Place  #: Path in the file.
    #: ns for run, sleep, period, timer; units for work; bytes for read, write, send and recv; children for
    #: wait (0: all); the value for set.
    amount: Distribution | None = None
    name: str = ""  #: Lock, pipe, barrier, condition, timer, kernel, child task or attribute.
    lock: str = ""  #: Lock that an await lets go of; empty for none.
    option: bool = False  #: signal: wake all who wait; timer: keep to the rhythm when it is late.
    chunk_bytes: int = 0  #: Bytes per call of read and write.
    #: `is_sync`, `is_direct`: Options of read and write.
    is_sync: bool = False
    is_direct: bool = False
    target: str = ""  #: Task that a change changes; empty: itself.
    cpus: tuple[int, ...] = ()  #: That it may use from then on, where `name` is "affinity".
    rounds: int = 0  #: Of a loop; 0 means for ever.
    body: tuple[Phase, ...] = ()  #: Of a loop.


def walk(phases: tuple[Phase, ...], times: int | None = 1) -> Iterator[tuple[Phase, int | None]]:
    """Visit every phase once, with how often one instance executes it."""
    for phase in phases:
        yield phase, times
        if phase.verb == "loop":
            inner = None if times is None or not phase.rounds else times * phase.rounds
            yield from walk(phase.body, inner)


class PhaseReader:
    """Reads the phases of one task.

    Mistakes are noted in `source`; `task` is its name, for messages. `is_wanted` is called with a phase
    that has the key `when`, its path and its place in words, and says whether the params allow it; without
    it `when` is refused.
    """

    def __init__(
        self,
        source: Source,
        *,
        task: str,
        tick_ns: int,
        is_wanted: Callable[[dict[str, Any], Place, str], bool] | None = None,
    ):
        self.source = source
        self.task = task
        self.tick_ns = tick_ns
        self.is_wanted = is_wanted

    def read(self, values: object, at: Place, prefix: str = "") -> tuple[Phase, ...]:
        """Read a list of phases."""
        if not isinstance(values, list) or not values:
            place = f"task {self.task!r}" + (f", phase {prefix[:-1]}" if prefix else "")
            self.source.fault(at, place, f"{at[-1]!r} must be a list with at least one phase")
            return ()
        found: list[Phase] = []
        for i, value in enumerate(values):
            number = f"{prefix}{i + 1}"
            try:
                found += self._phase(value, (*at, i), number)
            except UnitError as error:
                place = f"task {self.task!r}, phase {number}"
                self.source.fault((*at, i), place, str(error))
        return tuple(found)

    def _phase(self, value: object, at: Place, number: str) -> list[Phase]:
        """Read one phase; a `spawn` or `set` of several becomes several."""
        if isinstance(value, str):
            verb = value.strip()
            if verb not in VERBS:
                raise UnitError(f"unknown verb {verb!r}{did_you_mean(verb, VERBS)}")
            if verb not in BARE_VERBS:
                raise UnitError(f"verb {verb!r} needs a value, as in {EXAMPLES[verb]}")
            value = {verb: True}
        if not isinstance(value, dict):
            raise UnitError(f"a phase is a table such as {EXAMPLES['run']} (got {value!r})")
        if "when" in value and self.is_wanted is not None:
            if not self.is_wanted(value, at, f"task {self.task!r}, phase {number}"):
                return []
            value = {key: item for key, item in value.items() if key != "when"}
        verbs = [key for key in value if key in VERBS]
        if len(verbs) != 1:
            if len(verbs) > 1:
                raise UnitError(f"one verb per phase (got {' and '.join(verbs)})")
            word = next(iter(value), "")
            raise UnitError(f"unknown verb {word!r}{did_you_mean(word, VERBS)}")
        verb = verbs[0]
        for key in value:
            if key != verb and not (verb == "loop" and key == "do"):
                known = [verb, "do"] if verb == "loop" else [verb]
                raise UnitError(f"unknown key {key!r} beside {verb!r}{did_you_mean(key, known)}")
        blank = Phase(verb=verb, number=number, at=at)
        if verb == "loop":
            return [self._loop(value, blank)]
        try:
            return VERBS[verb](self, value[verb], blank)
        except UnitError as error:
            raise UnitError(f"{verb}: {error}") from None

    def _loop(self, value: dict[str, Any], blank: Phase) -> Phase:
        rounds = 0
        if value["loop"] != "forever":
            try:
                rounds = parse_count(value["loop"], minimum=1)
            except UnitError as error:
                raise UnitError(f"loop: {error}; or 'forever'") from None
        if "do" not in value:
            raise UnitError(f"loop: key 'do' is missing, as in {EXAMPLES['loop']}")
        body = self.read(value["do"], (*blank.at, "do"), f"{blank.number}.")
        return replace(blank, rounds=rounds, body=body)

    # ---- reading the value of each verb ---------------------------------

    def _time(self, value: object) -> int:
        return parse_duration(value, tick_ns=self.tick_ns)

    def _amount(self, value: object, read: Callable[[object], int], minimum: int = 1) -> Distribution:
        """Read a value or a distribution of values, none below `minimum`."""
        if looks_like_distribution(value):
            return parse_distribution(value, read=read, minimum=minimum)
        number = read(value)
        if number < minimum:
            raise UnitError(f"must be more than 0 (got {value})")
        return Distribution("constant", (number,))

    def timed(self, value: object, blank: Phase) -> list[Phase]:
        """Read run, sleep (0 is allowed, for params that switch one off), period."""
        minimum = 1 if blank.verb == "period" else 0
        return [replace(blank, amount=self._amount(value, self._time, minimum))]

    def work(self, value: object, blank: Phase) -> list[Phase]:
        """Read ``{kernel = "pi", count = 1000}``."""
        table = self._table(value, ("kernel", "count"), required=("kernel", "count"))
        kernel = table["kernel"]
        if kernel not in WORK_KERNELS:
            raise UnitError(f"unknown kernel {kernel!r}{did_you_mean(str(kernel), WORK_KERNELS)}")
        amount = self._amount(table["count"], parse_count)
        return [replace(blank, name=kernel, amount=amount)]

    def transfer(self, value: object, blank: Phase) -> list[Phase]:
        """Read read and write: a size, or a table with options."""
        keys = ("bytes", "chunk", "sync", "direct")
        table: dict[str, Any] = {"bytes": value}
        if isinstance(value, dict) and "dist" not in value:
            table = self._table(value, keys, required=("bytes",))
        amount = self._amount(table["bytes"], parse_size)
        chunk = parse_size(table.get("chunk", CHUNK_BYTES_DEFAULT))
        if not 1 <= chunk <= U32_MAX:
            raise UnitError(f"chunk must be from 1 B to 4 GiB (got {table['chunk']})")
        for key in ("sync", "direct"):
            if not isinstance(table.get(key, False), bool):
                raise UnitError(f"{key} must be true or false (got {table[key]!r})")
        sync, direct = table.get("sync", False), table.get("direct", False)
        return [replace(blank, amount=amount, chunk_bytes=chunk, is_sync=sync, is_direct=direct)]

    def message(self, value: object, blank: Phase) -> list[Phase]:
        """Read send and recv: ``{pipe = "p", bytes = 64}``, or the pipe for one byte."""
        table: dict[str, Any] = {"pipe": value, "bytes": 1}
        if not isinstance(value, str):
            table = self._table(value, ("pipe", "bytes"), required=("pipe", "bytes"))
        amount = self._amount(table["bytes"], parse_size)
        return [replace(blank, name=self._word(table["pipe"]), amount=amount)]

    def named(self, value: object, blank: Phase) -> list[Phase]:
        """Read lock, unlock, barrier, join: a name."""
        return [replace(blank, name=self._word(value))]

    def wait_for(self, value: object, blank: Phase) -> list[Phase]:
        """Read await: a condition, or ``{condition = "c", lock = "m"}``."""
        table: dict[str, Any] = {"condition": value}
        if not isinstance(value, str):
            table = self._table(value, ("condition", "lock"), required=("condition",))
        lock = self._word(table["lock"]) if "lock" in table else ""
        return [replace(blank, name=self._word(table["condition"]), lock=lock)]

    def signal(self, value: object, blank: Phase) -> list[Phase]:
        """Read signal: a condition, or ``{condition = "c", all = true}``."""
        table: dict[str, Any] = {"condition": value}
        if not isinstance(value, str):
            table = self._table(value, ("condition", "all"), required=("condition",))
        if not isinstance(table.get("all", False), bool):
            raise UnitError(f"all must be true or false (got {table['all']!r})")
        return [replace(blank, name=self._word(table["condition"]), option=table.get("all", False))]

    def timer(self, value: object, blank: Phase) -> list[Phase]:
        """Read timer: a time, or ``{period = "10ms", name = "t", late = "keep"}``."""
        table = {"period": value}
        if isinstance(value, dict):
            table = self._table(value, ("period", "name", "late"), required=("period",))
        period_ns = self._time(table["period"])
        if not period_ns:
            raise UnitError(f"must be more than 0 (got {table['period']})")
        late = table.get("late", "restart")
        if late not in ("restart", "keep"):
            raise UnitError(f"late: unknown word {late!r}{did_you_mean(str(late), LATE)}")
        name = self._word(table.get("name", "timer"))
        amount = Distribution("constant", (period_ns,))
        return [replace(blank, name=name, amount=amount, option=late == "keep")]

    def spawn(self, value: object, blank: Phase) -> list[Phase]:
        """Read a task's name, or a list of them, spawned in this order."""
        names = value if isinstance(value, list) else [value]
        if not names:
            raise UnitError("the list is empty")
        return [replace(blank, name=self._word(name)) for name in names]

    def wait(self, value: object, blank: Phase) -> list[Phase]:
        """Read true or "all" for every child so far, or a number of children."""
        if value is True or value == "all":
            return [replace(blank, amount=Distribution("constant", (0,)))]
        number = parse_count(value, minimum=1, maximum=U32_MAX)
        return [replace(blank, amount=Distribution("constant", (number,)))]

    def flag(self, value: object, blank: Phase) -> list[Phase]:
        """Read yield and exit, which take nothing but true."""
        if value is not True:
            raise UnitError(f"takes no value but true (got {value!r})")
        return [blank]

    def set(self, value: object, blank: Phase) -> list[Phase]:
        """Read ``{tickets = 200}``; several attributes are set one by one."""
        if not isinstance(value, dict) or not value:
            raise UnitError(f"needs attributes, as in {EXAMPLES['set']}")
        if "nice" in value and "weight" in value:
            raise UnitError("nice and weight contradict each other: keep one")
        found = []
        for name, text in value.items():
            number = read_attribute(name, text, tick_ns=self.tick_ns)
            amount = Distribution("constant", (number,))
            found.append(replace(blank, name=name, amount=amount))
        return found

    def change(self, value: object, blank: Phase) -> list[Phase]:
        """Read ``{task = "b", affinity = [0], weight = 10}``; one by one, as `set`."""
        if not isinstance(value, dict) or not value.keys() - {"task"}:
            raise UnitError(f"needs attributes or an affinity, as in {EXAMPLES['change']}")
        rest = {key: item for key, item in value.items() if key not in ("task", "affinity")}
        target = self._word(value["task"]) if "task" in value else ""
        found = self.set(rest, blank) if rest else []
        if "affinity" in value:
            found.append(replace(blank, name="affinity", cpus=read_cpus(value["affinity"])))
        return [replace(phase, target=target) for phase in found]

    @staticmethod
    def _word(value: object) -> str:
        if not isinstance(value, str) or not value:
            raise UnitError(f"needs a name (got {value!r})")
        return value

    @staticmethod
    def _table(value: object, keys: tuple[str, ...], required: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise UnitError(f"needs a table with {', '.join(keys)} (got {value!r})")
        for key in value:
            if key not in keys:
                raise UnitError(f"unknown key {key!r}{did_you_mean(key, keys)}")
        for key in required:
            if key not in value:
                raise UnitError(f"key {key!r} is missing")
        return value


def read_cpus(value: object) -> tuple[int, ...]:
    """Read CPUs: a list of numbers, or text such as ``"0-3,6"``."""
    parts = value if isinstance(value, list) else str(value).split(",")
    cpus: set[int] = set()
    for part in parts:
        first, dash, last = str(part).partition("-")
        low = parse_count(first, maximum=CPUS_MAX - 1)
        high = parse_count(last, maximum=CPUS_MAX - 1) if dash else low
        if high < low:
            raise UnitError(f"the range {part!r} is empty")
        cpus.update(range(low, high + 1))
    if not cpus:
        raise UnitError("needs at least one CPU")
    return tuple(sorted(cpus))


def read_attribute(name: str, value: object, *, tick_ns: int) -> int:
    """Read the value of a task attribute.

    >>> read_attribute("cap", "50%", tick_ns=0)
    50
    """
    if name not in ATTRIBUTES:
        raise UnitError(f"unknown attribute {name!r}{did_you_mean(name, ATTRIBUTES)}")
    _, lowest, highest, how = ATTRIBUTES[name]
    try:
        if how == "time":
            return parse_duration(value, tick_ns=tick_ns)
        if how == "percent" and isinstance(value, str):
            value = value.strip().removesuffix("%")
        return parse_count(value, minimum=lowest, maximum=highest)
    except UnitError as error:
        raise UnitError(f"{name}: {error}") from None


VERBS: dict[str, Callable[[PhaseReader, object, Phase], list[Phase]]] = {
    "run": PhaseReader.timed,
    "work": PhaseReader.work,
    "sleep": PhaseReader.timed,
    "period": PhaseReader.timed,
    "read": PhaseReader.transfer,
    "write": PhaseReader.transfer,
    "yield": PhaseReader.flag,
    "lock": PhaseReader.named,
    "unlock": PhaseReader.named,
    "send": PhaseReader.message,
    "recv": PhaseReader.message,
    "barrier": PhaseReader.named,
    "await": PhaseReader.wait_for,
    "signal": PhaseReader.signal,
    "timer": PhaseReader.timer,
    "spawn": PhaseReader.spawn,
    "wait": PhaseReader.wait,
    "set": PhaseReader.set,
    "join": PhaseReader.named,
    "change": PhaseReader.change,
    "loop": PhaseReader.flag,  # read by _loop, which also needs `do`
    "exit": PhaseReader.flag,
}
BARE_VERBS = ("yield", "wait", "exit")
EXAMPLES = {
    "run": '{run = "5ms"}',
    "work": '{work = {kernel = "pi", count = 1000}}',
    "sleep": '{sleep = "10ms"}',
    "period": '{period = "10ms"}',
    "read": '{read = "64KiB"}',
    "write": '{write = "64KiB"}',
    "lock": '{lock = "m"}',
    "unlock": '{unlock = "m"}',
    "send": '{send = "p"}',
    "recv": '{recv = "p"}',
    "barrier": '{barrier = "b"}',
    "await": '{await = {condition = "c", lock = "m"}}',
    "signal": '{signal = "c"}',
    "timer": '{timer = "10ms"}',
    "spawn": '{spawn = "child"}',
    "set": "{set = {tickets = 200}}",
    "join": '{join = "g"}',
    "change": '{change = {task = "b", affinity = [0, 1]}}',
    "loop": "{loop = 10, do = [...]}",
}
