# SPDX-License-Identifier: MIT
"""Parameters of a workload: `[params]`, overrides, and `{expressions}`.

A file may hold a family of workloads. `[params]` gives names and defaults, the
user overrides them (``poisson:rho=0.9``), and any string in the file may
contain an expression in braces, ``"exp({mean / rho})"``. Expressions know
numbers, times, sizes, ``+ - * /``, ``//`` (rounded down) and parentheses; they
are exact until a value is used.

Read next: spec.py, which substitutes before it reads anything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ..errors import UnitError, did_you_mean
from ..toml_file import Source
from ..units import Quantity, format_duration, format_size, parse_quantity

_KEYS = ("default", "choices", "min", "max", "about", "scales")
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d[\d_]*(?:\.\d+)?(?:[A-Za-zµ]+)?)"
    r"|(?P<name>[A-Za-z_][\w-]*)|(?P<mark>//|[-+*/()]))"
)


@dataclass(frozen=True)
class Param:
    """One parameter, as declared and as set.

    The name of a workload shows `text`, so it must not depend on how the user
    wrote the value: "20ms" and "0.02s" are the same parameter.
    """

    name: str  #: Its name in `[params]`.
    default: str  #: The default as text.
    value: Quantity | str  #: What is used: a number with a dimension, or one of `choices`.
    choices: tuple[str, ...] = ()  #: The words allowed; empty for a number.
    about: str = ""  #: One line for people.
    is_default: bool = True  #: Whether the value is that of the default.
    scales: bool = False  #: Whether it says how much work there is, so that `--scale` applies to it.

    def scaled(self, factor: float) -> str:
        """Write the value for so much of the work."""
        assert isinstance(self.value, Quantity)
        whole = max(1, round(self.value.value * Fraction(factor)))
        return str(whole) + {"time": "ns", "size": "B"}.get(self.value.dimension, "")

    @property
    def text(self) -> str:
        """The value as text, such as ``"50"`` or ``"20ms"``."""
        if isinstance(self.value, str):
            return self.value
        if self.value.dimension == "time" and self.value.value >= 0:
            return format_duration(round(self.value.value))
        if self.value.dimension == "size" and self.value.value >= 0:
            return format_size(round(self.value.value))
        return self.value.text()


def read_params(source: Source, overrides: Mapping[str, object], *, tick_ns: int) -> dict[str, Param]:
    """Read `[params]` and apply the user's choices."""
    table = source.values.get("params", {})
    if not isinstance(table, dict):
        source.fault(("params",), "params", "must be a table: [params]")
        return {}
    params: dict[str, Param] = {}
    for name, declared in table.items():
        try:
            params[name] = _read_param(name, declared, overrides.get(name), tick_ns)
        except UnitError as error:
            source.fault(("params", name), f"param {name!r}", str(error))
    for name in overrides:
        if name not in table:
            known = list(table)
            hint = did_you_mean(name, known) if known else " (this workload has none)"
            source.fault(("params",), "", f"unknown param {name!r}{hint}")
    return params


def _read_param(name: str, declared: object, given: object, tick_ns: int) -> Param:
    table = declared if isinstance(declared, dict) else {"default": declared}
    for key in table:
        if key not in _KEYS:
            raise UnitError(f"unknown key {key!r}{did_you_mean(key, _KEYS)}")
    if "default" not in table:
        raise UnitError("key 'default' is missing")
    about, default = str(table.get("about", "")), table["default"]
    text = default if given is None else given
    scales = table.get("scales", False)
    if not isinstance(scales, bool) or (scales and "choices" in table):
        raise UnitError("scales: must be true, or left out; words have no size")
    if "choices" in table:
        if not isinstance(table["choices"], list):
            raise UnitError(f"choices: must be a list of strings (got {table['choices']})")
        choices = tuple(str(choice) for choice in table["choices"])
        for word in (str(default), str(text)):
            if word not in choices:
                raise UnitError(f"unknown choice {word!r}{did_you_mean(word, choices)}")
        return Param(name, str(default), str(text), choices, about, str(text) == str(default))
    expected = parse_quantity(default, tick_ns=tick_ns)
    value = parse_quantity(text, tick_ns=tick_ns)
    if value.dimension != expected.dimension and value.value != 0:
        raise UnitError(f"must be a {expected.dimension}, like its default {default} (got {text})")
    value = Quantity(value.value, expected.dimension)
    for key, is_wrong in (("min", Fraction.__lt__), ("max", Fraction.__gt__)):
        if key not in table:
            continue
        bound = parse_quantity(table[key], tick_ns=tick_ns)
        if is_wrong(value.value, bound.value):
            side = "at least" if key == "min" else "at most"
            raise UnitError(f"must be {side} {table[key]} (got {text})")
    return Param(name, str(default), value, (), about, value == expected, scales)


def substitute(
    value: object, params: Mapping[str, Param], source: Source, at: tuple[str | int, ...]
) -> object:
    """Replace every ``{expression}`` inside a value, however deep."""
    if isinstance(value, dict):
        return {key: substitute(item, params, source, (*at, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, params, source, (*at, i)) for i, item in enumerate(value)]
    if not isinstance(value, str) or "{" not in value:
        return value
    try:
        whole = _EXPRESSION.fullmatch(value.strip())
        if whole is None:
            return _EXPRESSION.sub(lambda match: _text(evaluate(match[1], params)), value)
        result = evaluate(whole[1], params)
    except UnitError as error:
        source.fault(at, _place(at), str(error))
        return value
    if isinstance(result, str) or result.dimension != "number":
        return _text(result)
    if result.value.denominator == 1:
        return int(result.value)
    return Decimal(result.text())


def _place(at: tuple[str | int, ...]) -> str:
    keys = [str(step) for step in at if isinstance(step, str)]
    return f"key {keys[-1]!r}" if keys else ""


def _text(value: Quantity | str) -> str:
    return value if isinstance(value, str) else value.text()


def evaluate(expression: str, params: Mapping[str, Param]) -> Quantity | str:
    """Calculate one expression.

    >>> evaluate("20ms / 0.8", {}).text()
    '25000000ns'
    """
    return _Expression(expression, params).result()


#: How deep parentheses and signs may stand in each other; Python's own stack is limited.
_DEPTH_MAX = 50


class _Expression:
    """Recursive descent: sum -> product -> atom."""

    def __init__(self, text: str, params: Mapping[str, Param]):
        self.text, self.params = text, params
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.wrong(f"cannot read {text[at:].strip()!r}")
            self.tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            at = match.end()
        self.at = 0
        self.depth = 0

    def wrong(self, message: str) -> UnitError:
        return UnitError(f"expression {{{self.text}}}: {message}")

    def next_mark(self, *marks: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at] in [("mark", m) for m in marks]:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def result(self) -> Quantity | str:
        if len(self.tokens) == 1 and self.tokens[0][0] == "name":
            return self.named(self.tokens[0][1])
        value = self.sum()
        if self.at < len(self.tokens):
            raise self.wrong(f"cannot read {self.tokens[self.at][1]!r}")
        return value

    def sum(self) -> Quantity:
        left = self.product()
        while mark := self.next_mark("+", "-"):
            right = self.product()
            if left.dimension != right.dimension:
                raise self.wrong(f"a {left.dimension} {mark} a {right.dimension} has no meaning")
            sign = 1 if mark == "+" else -1
            left = Quantity(left.value + sign * right.value, left.dimension)
        return left

    def product(self) -> Quantity:
        left = self.atom()
        while mark := self.next_mark("*", "/", "//"):
            right = self.atom()
            if mark == "*":
                left = self.times(left, right)
            else:
                left = self.divided(left, right, is_whole=mark == "//")
        return left

    def times(self, left: Quantity, right: Quantity) -> Quantity:
        if "number" not in (left.dimension, right.dimension):
            raise self.wrong(f"a {left.dimension} * a {right.dimension} has no meaning")
        dimension = right.dimension if left.dimension == "number" else left.dimension
        return Quantity(left.value * right.value, dimension)

    def divided(self, left: Quantity, right: Quantity, *, is_whole: bool) -> Quantity:
        if right.value == 0:
            raise self.wrong("division by zero")
        if right.dimension not in ("number", left.dimension):
            raise self.wrong(f"a {left.dimension} / a {right.dimension} has no meaning")
        value = left.value / right.value
        dimension = left.dimension if right.dimension == "number" else "number"
        return Quantity(Fraction(value.__floor__()) if is_whole else value, dimension)

    def atom(self) -> Quantity:
        mark = self.next_mark("-", "(")
        if mark:
            return self.nested(mark)
        if self.at >= len(self.tokens):
            raise self.wrong("it ends where a value is needed")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return parse_quantity(text)
        if kind == "mark":
            raise self.wrong(f"a value is needed, not {text!r}")
        value = self.named(text)
        if isinstance(value, str):
            raise self.wrong(f"param {text!r} is a word, not a number")
        return value

    def nested(self, mark: str) -> Quantity:
        """What follows a sign or an opening parenthesis."""
        if self.depth == _DEPTH_MAX:
            raise self.wrong(f"signs and parentheses stand more than {_DEPTH_MAX} deep")
        self.depth += 1
        inner = self.atom() if mark == "-" else self.sum()
        self.depth -= 1
        if mark == "-":
            return Quantity(-inner.value, inner.dimension)
        if not self.next_mark(")"):
            raise self.wrong("a ')' is missing")
        return inner

    def named(self, name: str) -> Quantity | str:
        if name not in self.params:
            known = list(self.params)
            raise self.wrong(f"unknown param {name!r}{did_you_mean(name, known)}")
        return self.params[name].value
