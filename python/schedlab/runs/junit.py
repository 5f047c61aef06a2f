# SPDX-License-Identifier: MIT
"""JUnit XML of one suite, for continuous integration.

Invariant: any text gives XML that parses; a character that XML has no way to write is replaced.
Read next: gate.py; show/check.py and grade/outputs.py, which write it, too.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from collections.abc import Sequence
from typing import Any

_CONTROL = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

#: Class name, name, and for one that failed its message and text.
Case = tuple[str, str, tuple[str, str] | None]


def suite_of(name: str, cases: Sequence[Case], *, seconds: float = 0) -> xml.Element:
    """One suite."""
    failures = sum(failure is not None for _, _, failure in cases)
    suite = xml.Element("testsuite", name=name, tests=str(len(cases)), failures=str(failures), errors="0",
                        skipped="0", time=f"{seconds:.3f}")  # fmt: skip
    for classname, case_name, failure in cases:
        case = xml.SubElement(suite, "testcase", classname=classname, name=case_name)
        if failure is not None:
            xml.SubElement(case, "failure", message=clean(failure[0])).text = clean(failure[1])
    return suite


def as_file(root: xml.Element) -> str:
    """A whole file."""
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"


def junit_of(name: str, cases: Sequence[Case], *, seconds: float = 0) -> str:
    """JUnit XML of one suite."""
    return as_file(suite_of(name, cases, seconds=seconds))


def comparison_as_junit(result: dict[str, Any]) -> str:
    """Of `compare`: a case for each condition on each workload and policy, and for each failed run."""
    cases: list[Case] = [
        (f"{gate['workload']}.{gate['policy_b']}", gate["condition"],
         (gate["condition"], gate["text"]) if gate["holds"] else None)
        for gate in result["gates"]
    ]  # fmt: skip
    cases += [
        (f"{run['workload']}.{run['policy']}", f"run with seed {run['seed']}",
         ("the run failed", f"{run['directory']}: {run['error']}"))
        for run in result["failed_runs"]
    ]  # fmt: skip
    return junit_of("schedlab compare", cases)


def clean(text: str) -> str:
    """Text as XML can have it."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
