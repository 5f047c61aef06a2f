# SPDX-License-Identifier: MIT
"""What the package shows to others says what it takes, gives back and refuses."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from numpydoc.validate import validate

import schedlab

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / "python"

#: Of numpydoc's checks, those whose failure misleads a reader.
ERRORS = {
    "GL02",  # closing quotes on their own line
    "GL03",  # no double blank lines
    "GL05",  # no tabs
    "GL06",  # unknown section
    "GL07",  # sections in order
    "SS01",  # a summary
    "SS02",  # that begins with a capital
    "SS04",  # and has no leading spaces
    "SS06",  # and is one line
    "PR01",  # each parameter is documented
    "PR02",  # and no unknown one is
    "PR04",  # with a type
    "PR07",  # and a description
    "RT01",  # a result is described ...
    "YD01",  # ... or what is yielded
}


def modules() -> list[Path]:
    return sorted(PYTHON.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(PYTHON).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def public_functions(path: Path) -> list[str]:
    """Dotted names of functions whose docstring has a table of parameters, or has to have one.

    What `schedlab` itself offers has to; elsewhere a sentence is enough. Commands document
    themselves to typer instead.
    """
    if path.relative_to(PYTHON).as_posix() in ("schedlab/cli/app.py", "schedlab/__main__.py"):
        return []
    tree = ast.parse(path.read_text())
    return [
        f"{name_of(path)}.{node.name}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and (node.args.args or node.args.kwonlyargs)
        and (node.name in schedlab.__all__ or "\nParameters\n" in (ast.get_docstring(node) or ""))
    ]


def problems(function: str) -> list[str]:
    """What numpydoc says against a function, by its dotted name."""
    errors = validate(function)["errors"]
    return [f"{function}: {code}: {text}" for code, text in errors if code in ERRORS]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PYTHON)))
def test_functions_are_documented(path):
    assert [text for function in public_functions(path) for text in problems(function)] == []


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PYTHON)))
def test_every_public_name_has_a_docstring(path):
    tree = ast.parse(path.read_text())
    definitions = ast.FunctionDef | ast.ClassDef
    bare = [
        f"{path.name}:{node.lineno}: {node.name}"
        for node in tree.body
        if isinstance(node, definitions) and not node.name.startswith("_") and not ast.get_docstring(node)
    ]
    assert ast.get_docstring(tree) or not tree.body, "the module says what it is for"
    assert bare == []


UNDOCUMENTED = '''
def count(x, *, unit):
    """Count things.

    Parameters
    ----------
    x : array_like
        What to count.
    """
    return x, unit
'''


def test_an_undocumented_parameter_and_result_are_found(tmp_path, monkeypatch):
    (tmp_path / "schedlab_undocumented.py").write_text(UNDOCUMENTED)
    monkeypatch.syspath_prepend(tmp_path)
    found = problems("schedlab_undocumented.count")
    assert any("PR01" in text and "unit" in text for text in found)
    assert any("RT01" in text for text in found)
