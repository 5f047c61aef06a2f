# SPDX-License-Identifier: MIT
"""What package indexes, citations and reports of vulnerabilities read is there, and is right."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib

import pytest

from conftest import missing

CONTRACTS = ("policy", "host", "program", "record", "run folder")


def test_citation_has_the_version_of_the_package(root):
    found = re.search(r"^version: (.*)$", (root / "CITATION.cff").read_text(), re.M)
    assert found[1] == (root / "VERSION").read_text().strip()


def test_each_contract_says_what_a_version_promises(root):
    rows = re.findall(r"^\| ([a-z ]+) \| (.+) \|$", (root / "docs/versions.md").read_text(), re.M)
    assert tuple(name for name, _ in rows if name != "contract") == CONTRACTS
    assert ", ".join(CONTRACTS) in (root / "changelog.d/README.md").read_text().replace("\n", " ")


def test_classifiers_name_each_python_that_is_tested(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    named = [each.split()[-1] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    minimum = project["requires-python"].removeprefix(">=")
    assert named == [f"3.{minor}" for minor in range(int(minimum[2:]), 15)]


@pytest.mark.parametrize("document", ["SECURITY.md", "docs/versions.md"])
def test_files_that_a_document_names_are_there(root, document):
    text = (root / document).read_text()
    named = set(re.findall(r"`((?:tests|include|docs|hosts)/[\w./]+)`", text))
    named |= {f"tests/python/{name}" for name in re.findall(r"`(test_\w+\.py)`", text)}
    here = (root / document).parent
    links = {link.split("#")[0] for link in re.findall(r"\]\(((?!http)[^)]+)\)", text)}
    missing = [name for name in named if not (root / name).exists()]
    assert missing + [link for link in links if not (here / link).exists()] == []
    assert named or links


def test_changelog_has_each_fragment(root):
    if not importlib.util.find_spec("towncrier"):
        missing("towncrier", "./lab setup")
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "1.0.0"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}a fragment is +NAME.KIND.md; see changelog.d/README.md"
    flat = " ".join(done.stdout.split())
    fragments = [path for path in (root / "changelog.d").glob("*.md") if path.name != "README.md"]
    lost = [path.name for path in fragments if " ".join(path.read_text().split())[:60] not in flat]
    assert lost == [] and len(fragments) > 0


def test_contributing_has_a_row_for_each_package_and_names_tests_that_are_there(root):
    text = (root / "CONTRIBUTING.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    lost = []
    for row in rows:
        folder = ""
        for name in re.findall(r"`([\w./*-]+)`", " ".join(row.split("|")[2:])):
            if name.endswith(".py") and "/" in name:
                folder = name.rpartition("/")[0]
            path = name if "/" in name else f"{folder}/{name}"
            if name.startswith("test") and not list(root.glob(path)):
                lost.append(name)
    packages = [path.parent.name for path in (root / "python").glob("*/*/__init__.py")]
    first = " ".join(row.split("|")[1] for row in rows)
    assert lost == [] and [name for name in packages if not re.search(rf"\b{name}\b", first)] == []
