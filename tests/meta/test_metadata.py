# SPDX-License-Identifier: MIT
"""What package indexes, citations and reports of vulnerabilities read is there, and is right."""

from __future__ import annotations

import re
import tomllib

import pytest

CONTRACTS = ("policy", "host", "program", "record", "run directory")


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
