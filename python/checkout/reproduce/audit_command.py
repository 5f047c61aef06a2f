# SPDX-License-Identifier: MIT
"""`schedlab audit`: does what a report derives and says follow from its own rows?

Read next: audit.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from schedlab.cli.answer import print_json
from schedlab.cli.options import JsonOption
from schedlab.errors import UnavailableError, UsageError
from schedlab.paths import resource_root

REPORTS = (1, 2, 3, 4, 5)


def audit(
    reports: Annotated[
        list[int] | None, typer.Argument(metavar="[REPORT]...", help="1 to 5; default: all.")
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show what holds, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Hold the five reports against their own tables: numbers, comparisons, relations."""
    from .audit import audit_report

    found = [audit_report(report_folder(number)) for number in wanted_reports(reports) or REPORTS]
    if as_json:
        print_json({"audits": [
            {"report": each.report,
             "counts": {kind: {"wrong": number, "total": total} for kind, (number, total) in each.counts.items()},
             "findings": [finding.as_json() for finding in each.findings]}
            for each in found
        ]})  # fmt: skip
        return
    from .show_audit import show_audit

    for each in found:
        show_audit(each, show_all=show_all)


def wanted_reports(numbers: list[int] | None) -> list[int]:
    """Reports that were asked for, all of which there are."""
    for number in numbers or ():
        if number not in REPORTS:
            raise UsageError(f"there is no report {number}; there are 1 to 5")
    return numbers or []


def report_folder(number: int) -> Path:
    """Where a report's figures are."""
    folder = resource_root() / "experiments" / f"report-{number}"
    if not folder.is_dir():
        raise UnavailableError(f"{folder} is not there; the experiments are part of a checkout")
    return folder
