# SPDX-License-Identifier: MIT
"""Small mutations of C and Python sources: comparisons, conditions, constants, statements.

Each operator changes one token or removes one statement, so that a mutant that no
test kills names one thing that no test looks at. Comments, strings and
preprocessor lines are left alone.

Read next: scratch.py, which tries a mutant.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """One changed source.

    `file` is relative to the checkout; `start` and `end` are offsets into its text,
    between which `new` takes the place of what is there.
    """

    file: str
    start: int
    end: int
    new: str
    operator: str
    line: int
    old: str

    def applied(self, text: str) -> str:
        """The source with the mutation in it."""
        return text[: self.start] + self.new + text[self.end :]


def changed_lines(mutant: Mutant, text: str) -> tuple[str, str]:
    """The lines that a mutant changes, before and after, in one line each."""
    begin = text.rfind("\n", 0, mutant.start) + 1
    end = text.find("\n", mutant.end)
    end = len(text) if end < 0 else end
    after = text[begin : mutant.start] + mutant.new + text[mutant.end : end]
    return " ".join(text[begin:end].split()), " ".join(after.split())


_C_SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "+=": "-=", "-=": "+=", "++": "--", "--": "++",
}  # fmt: skip
#: Binary operators have spaces around them here, which tells them from unary ones.
_C_TOKEN = re.compile(
    r"(?<= )(<=|>=|==|!=|&&|\|\||\+=|-=|<|>|\+|-)(?= )|(?<=\w)(\+\+|--)(?=;)|(\+\+|--)(?=\w)"
)
_C_NUMBER = re.compile(r"(?<![\w.\"'])(\d+)(?=U?L{0,2}\b)(?![\w.]*x)")
_C_STATEMENT = re.compile(
    r"^(\t+)((?:[\w>.\[\]*()-]+ (?:[-+|&]?=) [^;{}]+|[a-z]\w*\([^;{}]*\)|[\w>.-]+(?:\+\+|--));)$", re.M
)
_C_CONDITION = re.compile(r"\b(?:if|while) \(([^;{}]*?)\)(?= \{|\n)")
_C_HIDDEN = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^#(?:[^\n]*\\\n)*[^\n]*$", re.S | re.M
)


def _blank(match: re.Match) -> str:
    return re.sub(r"[^\n]", "~", match[0])


def mutants_of_c(file: str, text: str) -> list[Mutant]:
    """All mutants of a C source.

    Declarations of constants in macros are not touched, statements are removed only
    where they are one line, and a declaration is no statement.
    """
    shown = _C_HIDDEN.sub(_blank, text)
    found = []

    def add(start: int, end: int, new: str, operator: str) -> None:
        line = text.count("\n", 0, start) + 1
        found.append(Mutant(file, start, end, new, operator, line, text[start:end]))

    # Inside functions only: at file level stand prototypes, tables and knobs.
    for body in re.finditer(r"^\{\n.*?^\}", shown, re.S | re.M):
        low, high = body.span()
        for match in _C_TOKEN.finditer(shown, low, high):
            add(*match.span(), _C_SWAPS[match[0]], "operator")
        for match in _C_NUMBER.finditer(shown, low, high):
            add(*match.span(1), str(int(match[1]) + 1), "constant")
        for match in _C_STATEMENT.finditer(shown, low, high):
            add(*match.span(2), ";", "statement removed")
        for match in _C_CONDITION.finditer(shown, low, high):
            add(*match.span(1), f"!({text[slice(*match.span(1))]})", "condition negated")
    return found


_PY_COMPARE = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_PY_BINARY = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.BitAnd: "|", ast.BitOr: "&"}


def mutants_of_python(file: str, text: str) -> list[Mutant]:
    """All mutants of a Python source; annotations, docstrings and module level are left alone."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    data = text.encode()
    found = []

    def at(line: int, column: int) -> int:
        return len(data[: starts[line - 1] + column].decode())

    def span(node) -> tuple[int, int]:
        return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)

    def add(start: int, end: int, new: str, operator: str) -> None:
        line = text.count("\n", 0, start) + 1
        found.append(Mutant(file, start, end, new, operator, line, text[start:end]))

    def between(left, right, new: str) -> None:
        start, end = span(left)[1], span(right)[0]
        # Brackets between operands stay where they are.
        gap = re.search(r"[^\s()]+(?: not)?", text[start:end])
        if gap:
            add(start + gap.start(), start + gap.end(), new, "operator")

    def visit(node) -> None:
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _PY_COMPARE:
            between(node.left, node.comparators[0], _PY_COMPARE[type(node.ops[0])])
        elif isinstance(node, ast.BoolOp):
            new = "or" if isinstance(node.op, ast.And) else "and"
            between(node.values[0], node.values[1], new)
        elif isinstance(node, ast.BinOp) and type(node.op) in _PY_BINARY:
            between(node.left, node.right, _PY_BINARY[type(node.op)])
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            add(*span(node), repr(node.value + 1), "constant")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
            add(span(node)[0], span(node.operand)[0], "", "negation removed")
        elif isinstance(node, ast.If):
            add(*span(node.test), f"(not ({text[slice(*span(node.test))]}))", "condition negated")
        is_statement = isinstance(node, ast.AugAssign) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        )
        if is_statement:
            add(*span(node), "pass", "statement removed")
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(child)

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            for statement in node.body:
                visit(statement)
    # A function within a function is reached twice.
    return list(dict.fromkeys(found))


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """All mutants of a source of the checkout at `root`."""
    text = (root / file).read_text()
    return mutants_of_python(file, text) if file.endswith(".py") else mutants_of_c(file, text)
