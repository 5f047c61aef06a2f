# SPDX-License-Identifier: MIT
"""The distance of a set of runs from the published numbers, and the set that decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkout.reproduce.fit import fit
from checkout.reproduce.formula import Cell, MissingError
from checkout.reproduce.published import Table
from checkout.reproduce.samples import Done, Samples
from checkout.reproduce.spec import Claim, read_experiment
from schedlab.errors import SpecError

ROOT = Path(__file__).resolve().parents[2]

EXPERIMENT = """
[experiment]
title = "Report 9"
source = "-"
question = "-"
setup = "-"
done = "-"
{primary}

[[runs]]
name = "near"
title = "near"
host = "sim"
workloads = {{a = "w", b = "w"}}
policies = {{RR = "rr"}}
quick = {{seeds = 2}}
full = {{seeds = 2}}

[[runs]]
name = "far"
title = "far"
host = "sim"
workloads = {{a = "w", b = "w"}}
policies = {{RR = "rr"}}
quick = {{seeds = 2}}
full = {{seeds = 2}}

[[table]]
where = "Table 1"
title = "Time"
rows = ["RR"]
columns = ["a", "b"]
published = 'time["{{row}}", "{{column}}"]'
ours = 'run["{{column}}", "{{row}}", "makespan_ns"]'

[[table]]
where = "Table 2"
title = "Of one set"
rows = ["RR"]
columns = ["a"]
published = 'time["{{row}}", "{{column}}"]'
ours = 'run["{{column}}", "{{row}}", "makespan_ns"]'
on = ["near"]
"""
PRIMARY = 'primary = "near"\nprimary_why = "it is the nearest"\ncandidates = ["near", "far"]'
TABLES = {"time": Table("time", ("scheduler",), {("RR",): {"a": "100", "b": "10"}})}


class Given(Samples):
    """Numbers by set and workload, two seeds of each."""

    def __init__(self, runs, numbers):
        super().__init__({name: Done(each) for name, each in runs.items() if name in numbers})
        self.numbers = numbers

    def look_up(self, name, keys):
        value = self.numbers[name][keys[0]]
        if value is None:
            raise MissingError("failed")
        return Cell({1: value * 0.9, 2: value * 1.1}, {1: "x", 2: "y"})


def experiment(tmp_path, primary=PRIMARY):
    folder = tmp_path / "report-9"
    folder.mkdir()
    (folder / "experiment.toml").write_text(EXPERIMENT.format(primary=primary))
    (folder / "claims.toml").write_text("")
    return read_experiment(folder)


def test_the_distance_is_the_median_factor_over_the_cells_that_all_sets_have(tmp_path):
    asked = experiment(tmp_path)
    found = fit(asked, TABLES, Given(asked.runs, {"near": {"a": 50, "b": 10}, "far": {"a": 400, "b": 160}}))
    assert [each.on for each in found] == ["near", "far"]
    assert [each.n_cells for each in found] == [2, 2], "a table of one set is no cell of the other"
    # ln 2 and ln 1; ln 4 and ln 16: half and twice are as far.
    assert found[0].factor == pytest.approx(2**0.5)
    assert found[1].factor == pytest.approx(8)
    assert found[1].by_table == {"Time": pytest.approx(8)}


def test_a_cell_that_one_set_lacks_counts_for_none(tmp_path):
    asked = experiment(tmp_path)
    found = fit(asked, TABLES, Given(asked.runs, {"near": {"a": None, "b": 30}, "far": {"a": 100, "b": 20}}))
    assert [(each.on, each.n_cells) for each in found] == [("far", 1), ("near", 1)]
    assert [each.factor for each in found] == [pytest.approx(2), pytest.approx(3)]
    assert fit(asked, TABLES, Given(asked.runs, {})) == []
    assert fit(asked, TABLES, Given(asked.runs, {"near": {"a": 0, "b": None}})) == []


def test_a_claim_is_decided_on_the_primary_or_on_the_first_set_that_it_names(tmp_path):
    asked = experiment(tmp_path)
    assert asked.decided_on(Claim("c", "", "", "", None, ("far", "near"))) == "near"
    assert asked.decided_on(Claim("c", "", "", "", None, ("far",))) == "far"
    assert asked.decided_on(Claim("c", "", "", "", None, ())) == ""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('primary = "near"', 'primary = "nera"', "there is no set of runs 'nera'"),
        ('primary_why = "it is the nearest"', "", "needs primary_why"),
        ('["near", "far"]', '["far"]', "must have the primary, 'near', among them"),
    ],
)
def test_what_is_wrong_with_the_primary_is_said(tmp_path, old, new, problem):
    with pytest.raises(SpecError, match=r"experiment\.toml.*\[experiment\]") as caught:
        experiment(tmp_path, PRIMARY.replace(old, new))
    assert problem in str(caught.value)


@pytest.mark.parametrize("number", range(1, 6))
def test_every_report_names_its_primary_set(number):
    asked = read_experiment(ROOT / "experiments" / f"report-{number}")
    assert asked.primary in asked.candidates
    assert len(asked.candidates) > 1
    assert any(asked.decided_on(claim) == asked.primary for claim in asked.claims)
