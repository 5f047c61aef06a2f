# SPDX-License-Identifier: MIT
"""The tables of a workload file, as pydantic models: which keys, which values.

Each model reads one TOML table and turns values with units into numbers. A
model never stops at its first mistake; `read_table` turns what pydantic found
into faults with a line, the value, and the nearest right word.

Read next: spec.py, which reads the tables of a whole file.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)

from ..errors import UnitError, did_you_mean
from ..model import CPUS_MAX
from ..toml_file import Place, Source
from ..units import parse_count, parse_duration, parse_size
from .phases import ATTRIBUTES, read_attribute, read_cpus

LIST_MAX = 65_536


def _tick_ns(info: ValidationInfo) -> int | None:
    return (info.context or {}).get("tick_ns")


def _duration(value: object, info: ValidationInfo) -> int:
    return parse_duration(value, tick_ns=_tick_ns(info))


def _attribute(value: object, info: ValidationInfo) -> tuple[int, ...]:
    """Read one value for all instances, or a list that they take in turn."""
    name = info.field_name or ""
    values = value if isinstance(value, list) else [value]
    if not 1 <= len(values) <= LIST_MAX:
        raise UnitError(f"a list needs 1 to {LIST_MAX} values (got {len(values)})")
    tick_ns = _tick_ns(info) or 0
    try:
        return tuple(read_attribute(name, item, tick_ns=tick_ns) for item in values)
    except UnitError as error:
        raise UnitError(str(error).removeprefix(f"{name}: ")) from None


def _burst(value: object, info: ValidationInfo) -> tuple[int, ...] | str:
    """Read the burst hint: as other attributes, or the word "run"."""
    return "run" if value == "run" else _attribute(value, info)


def _group(value: object, info: ValidationInfo) -> tuple[int, ...] | str:
    """Read the attribute, or the name of a `[[group]]`."""
    return _name(value) if isinstance(value, str) else _attribute(value, info)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UnitError(f"must be a text (got {value!r})")
    return value.strip()


def _name(value: object) -> str:
    text = _text(value)
    if not all(char.isalnum() or char in "_.-" for char in text) or len(text) > 63:
        raise UnitError(f"must be letters, digits, '_', '-' or '.', at most 63 (got {text!r})")
    return text


def _counted(minimum: int, maximum: int) -> BeforeValidator:
    return BeforeValidator(lambda value: parse_count(value, minimum=minimum, maximum=maximum))


Duration = Annotated[int, BeforeValidator(_duration)]
Text = Annotated[str, BeforeValidator(_text)]
Name = Annotated[str, BeforeValidator(_name)]
Values = Annotated[tuple[int, ...] | None, BeforeValidator(_attribute)]


class Table(BaseModel):
    """Base of all tables: unknown keys are mistakes, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class WorkloadTable(Table):
    """``[workload]``."""

    name: Name | None = None
    title: Text | None = None
    question: Text | None = None
    description: Text | None = None
    source: Text | None = None
    tick: Annotated[int, BeforeValidator(lambda value: parse_duration(value))] = 10_000_000
    jitter: Duration | None = None
    horizon: Duration = 0
    interleaving: Text = ""
    cpus: Annotated[int, _counted(1, CPUS_MAX)] = 1


class TaskTable(Table):
    """``[[task]]``; `phases` and `arrival` are read elsewhere."""

    name: Name
    about: Text | None = None
    count: Annotated[int | None, _counted(1, 1_000_000)] = None
    arrival: Any = "0ms"
    phases: Any
    when: Any = None
    affinity: Annotated[tuple[int, ...], BeforeValidator(read_cpus)] = ()
    nice: Values = None
    weight: Values = None
    priority: Values = None
    tickets: Values = None
    credits: Values = None
    cap: Values = None
    group: Annotated[tuple[int, ...] | str | None, BeforeValidator(_group)] = None
    deadline: Values = None
    burst: Annotated[tuple[int, ...] | str | None, BeforeValidator(_burst)] = None

    def attributes(self) -> dict[str, tuple[int, ...]]:
        """Collect the attributes that were given, by name."""
        given = {name: getattr(self, name) for name in ATTRIBUTES}
        return {name: value for name, value in given.items() if isinstance(value, tuple)}


class LockTable(Table):
    """``[[lock]]``."""

    name: Name
    when: Any = None


class PipeTable(Table):
    """``[[pipe]]``; 512 bytes is what xv6 gives a pipe."""

    name: Name
    capacity: Annotated[int, BeforeValidator(parse_size), Field(ge=1)] = 512
    when: Any = None


class BarrierTable(Table):
    """``[[barrier]]``; without `parties`, all tasks that use it must meet."""

    name: Name
    parties: Annotated[int, _counted(1, 1_000_000)] = 0
    when: Any = None


class ConditionTable(LockTable):
    """``[[condition]]``."""


class GroupTable(Table):
    """``[[group]]``: a cgroup."""

    name: Name
    parent: Name | None = None
    weight: Annotated[int, _counted(1, 10_000)] = 100
    quota: Duration | None = None
    period: Duration = 100_000_000
    cpus: Annotated[tuple[int, ...], BeforeValidator(read_cpus)] = ()
    when: Any = None


class EventTable(Table):
    """``[[event]]``: what happens to the machine; events.KEYS says which keys a kind has."""

    kind: Text
    cpu: Annotated[int | None, _counted(0, CPUS_MAX - 1)] = None
    task: Name | None = None
    calls: Annotated[int | None, _counted(0, 1_000_000)] = None
    group: Name | None = None
    weight: Annotated[int | None, _counted(1, 10_000)] = None
    quota: Duration | None = None
    at: Duration | None = None
    time: Duration | None = None
    when: Any = None


class ExpectedTable(Table):
    """``[[expected]]``: a schedule worked out by hand."""

    policy: Name
    set: dict[str, Duration] = {}
    finish: dict[str, Duration]


Model = TypeVar("Model")


def read_table(
    model: type[Model], value: object, source: Source, *, at: Place, place: str, **context: object
) -> Model | None:
    """Read one table, as a `Table` or as a dataclass of pydantic; `context` is what its validators ask for."""
    if not isinstance(value, dict):
        source.fault(at, place, f"must be a table (got {value!r})")
        return None
    try:
        return TypeAdapter(model).validate_python(value, context=context)
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            _note(source, model, fault, at, place)
        return None


#: What TOML calls the type that is wanted.
_IN_TOML = {
    **dict.fromkeys(("dataclass_type", "dict_type", "mapping_type"), "must be a table"),
    **dict.fromkeys(("list_type", "tuple_type"), "must be a list"),
    "string_type": "must be a text",
    "bool_type": "must be true or false",
}


def _note(source: Source, model: Any, fault: Any, at: Place, place: str) -> None:
    """Write one of pydantic's findings in our words."""
    path = [step for step in fault["loc"] if isinstance(step, str | int)]
    keys = [step for step in path if isinstance(step, str)] or [""]
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        fields = model.__pydantic_fields__.items() if len(path) == 1 else ()
        hint = did_you_mean(keys[-1], [field.alias or name for name, field in fields])
        message = f"unknown key {keys[-1]!r}{hint}"
    elif fault["type"] == "missing":
        message = f"key {keys[-1]!r} is missing"
        path.pop()
    else:
        # Our own validators raise ValueErrors that already show the value.
        text = str(fault["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
        text = _IN_TOML.get(fault["type"], text)
        shown = "" if fault["type"] == "value_error" else f" (got {fault['input']!r})"
        message = f"{'.'.join(keys)}: {text}{shown}"
    source.fault((*at, *path), place, message)
