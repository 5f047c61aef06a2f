# SPDX-License-Identifier: MIT
"""docs/dependencies.md, pyproject.toml and ./lab name the same dependencies."""

from __future__ import annotations

import re
import tomllib


def python_packages(root) -> set[str]:
    with open(root / "pyproject.toml", "rb") as file:
        table = tomllib.load(file)
    wanted = table["build-system"]["requires"] + table["project"]["dependencies"]
    for extra in table["project"]["optional-dependencies"].values():
        wanted += extra
    return {re.match(r"[\w-]+", requirement)[0] for requirement in wanted}


def debian_packages(root) -> set[str]:
    listed = re.search(r"^debian_packages=\(([^)]*)\)", (root / "lab").read_text(), re.M)
    return set(listed[1].split())


def documented(root) -> dict[str, str]:
    rows = re.findall(r"^\| ([\w.-]+) \| (.+) \|$", (root / "docs/dependencies.md").read_text(), re.M)
    return {name: why for name, why in rows if set(name) != {"-"}}


def test_each_dependency_is_documented_and_nothing_else_is(root):
    assert set(documented(root)) == python_packages(root) | debian_packages(root)
