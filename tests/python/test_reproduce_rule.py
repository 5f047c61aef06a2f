# SPDX-License-Identifier: MIT
"""The rule of verdicts, edge by edge: a whole interval, a factor, a side, and the step of an instrument."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from checkout.reproduce.claims import (
    DIRECTION,
    FAILS,
    HOLDS,
    UNDECIDABLE,
    UNTESTED,
    Decision,
    decide,
    decide_all,
)
from checkout.reproduce.formula import Cell, Measure
from checkout.reproduce.published import Range
from checkout.reproduce.samples import Done, Samples
from checkout.reproduce.spec import Claim, Runs, Size
from checkout.reproduce.text import digits_of
from schedlab.model import Execution
from schedlab.stats.inference import Interval


def interval(low, high, method="bca"):
    return Interval((low + high) / 2, low, high, 10, 0.95, method)


def claim(**more):
    return Claim("c", "text", "where", "measure", None, ("s",), **more)


@pytest.mark.parametrize(
    ("published", "ours", "verdict"),
    [
        ((0.27, 0.28), (0.25, 0.30), HOLDS),
        ((0.27, 0.28), (0.50, 0.60), DIRECTION),
        ((0.27, 0.28), (0.70, 1.10), FAILS),
        ((0.27, 0.28), (1.50, 1.60), FAILS),
        ((2.40, 2.45), (0.25, 0.30), FAILS),
        ((2.40, 2.45), (2.00, 2.30), HOLDS),
        ((2.40, 2.45), (4.00, 5.00), DIRECTION),
        ((0.99, 1.01), (0.97, 1.03), HOLDS),  # it says that nothing changes
        ((0.99, 1.01), (0.80, 0.90), FAILS),
        # Too wide to decide anything: neither refuted nor confirmed.
        ((0.27, 0.28), (0.20, 1.10), UNTESTED),
        ((0.27, 0.28), (0.25, 0.90), DIRECTION),
        ((1.06, 1.07), (0.91, 1.22), UNTESTED),
        ((0.99, 1.01), (0.80, 1.03), UNTESTED),
        ((0.99, 1.01), (0.10, 5.00), UNTESTED),
    ],
)
def test_a_verdict_follows_from_figure_and_interval(published, ours, verdict):
    found, reason = decide(claim(null=1.0), Range(*published), interval(*ours))
    assert found == verdict, reason


def test_what_a_claim_says_counts_before_its_figure():
    """Report 5 says that Lottery is better than RR where its table has it worse."""
    says = claim(null=1.0, says="below")
    assert decide(says, Range(2.8, 2.82), interval(0.9, 0.95))[0] == DIRECTION
    assert decide(says, Range(2.8, 2.82), interval(2.7, 2.9))[0] == FAILS
    assert decide(says, None, interval(0.9, 0.95))[0] == HOLDS


def test_a_difference_that_is_sure_and_tiny_is_none():
    """A deterministic host is sure of a hundred-thousandth, too."""
    sure = interval(0.99987, 0.99996)
    verdict, reason = decide(claim(null=1.0, says="below"), None, sure)
    assert (verdict, "no difference that matters" in reason) == (FAILS, True)
    assert decide(claim(null=1.0, says="below", minimum=0.0), None, sure)[0] == HOLDS
    assert "the other way round" not in decide(claim(null=1.0, says="above"), None, sure)[1]
    assert "the other way round" in decide(claim(null=1.0, says="above"), None, interval(0.9, 0.95))[1]


def test_a_figure_without_an_effect_is_met_or_not():
    assert decide(claim(within=0.1), Range(557, 558), interval(540, 560))[0] == HOLDS
    assert decide(claim(within=0.1), Range(557, 558), interval(101, 105))[0] == FAILS
    assert decide(claim(within=0.1), Range(557, 558), interval(557, 557, "single"))[0] == UNTESTED
    assert decide(claim(within=0.1), Range(557, 558), interval(500, 900))[0] == UNTESTED


def test_as_many_digits_are_written_as_give_the_verdict():
    mine, figure = claim(null=1.0, published="22.4"), Range(22.35, 22.45)
    for high, digits in ((28.01, 4), (28.0630, 5)):
        ours = interval(27.3, high)
        verdict, reason = decide(mine, figure, ours)
        assert digits_of(Decision(mine, "sim-1", "sim", verdict, reason, figure, ours)) == digits


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        # The figure is 0.8, and a factor of 1.25 about it is 0.64 to 1: the side of no effect ends at 0.99.
        ((0.641, 0.900), HOLDS),
        ((0.639, 0.900), DIRECTION),  # one end is outside the factor
        ((0.700, 0.989), HOLDS),
        ((0.700, 0.991), UNTESTED),  # it reaches no effect, by less than counts as a difference
        ((0.088, 0.983), DIRECTION),  # as wide as the side itself: the mean alone is near the figure
        ((0.200, 0.639), DIRECTION),  # on the side, wholly outside the factor
        ((0.995, 1.005), FAILS),
        ((1.011, 1.200), FAILS),
    ],
)
def test_a_claim_holds_where_the_whole_interval_meets_figure_and_side(ours, verdict):
    found, reason = decide(claim(null=1.0), Range(0.8, 0.8), interval(*ours))
    assert found == verdict, reason


def test_an_interval_from_a_twelfth_to_none_does_not_confirm_72_percent():
    """Report 1, test 7 in a simulator: 0.28 published; our mean is near it, and the interval is nowhere near."""
    ours = replace(interval(0.088, 0.983), estimate=0.28)
    assert decide(claim(null=1.0), Range(0.27, 0.28), ours)[0] == DIRECTION
    assert decide(claim(), Range(0.27, 0.28), ours)[0] == UNTESTED, (
        "a figure alone needs the whole interval, too"
    )


@pytest.mark.parametrize(
    ("more", "published", "ours", "resolution", "verdict"),
    [
        # A difference in ticks, and a clock of ticks.
        ({"null": 0.0, "says": "below"}, None, (-1.6e-6, 1.4e-6), 0, FAILS),
        ({"null": 0.0, "says": "below"}, None, (-1.6e-6, 1.4e-6), 1, UNDECIDABLE),
        ({"null": 0.0, "says": "below"}, None, (-0.9, -0.5), 1, UNDECIDABLE),
        ({"null": 0.0, "says": "below"}, None, (-3, -1.1), 1, HOLDS),
        ({"null": 0.0, "says": "below"}, None, (1.1, 3), 1, FAILS),
        ({"null": 0.0, "says": "below"}, None, (-3, -0.5), 1, UNTESTED),
        ({"null": 0.0, "says": "below"}, None, (-3, 3), 1, UNTESTED),
        # The clock would have shown what the report claims: an effect below one step refutes it.
        ({"null": 0.0}, (-15, -15), (-0.2, 0.2), 1, FAILS),
        ({"null": 0.0}, (-0.5, -0.5), (-0.2, 0.2), 1, UNDECIDABLE),
        ({"null": 1.0}, (0.16, 0.16), (0.999, 1.001), 0.012, FAILS),
        ({"null": 1.0}, (0.99, 0.99), (0.987, 0.990), 0.014, UNDECIDABLE),
        # Of a ratio: what it divides by is below one tick, so both read 0.
        ({"null": 1.0}, (0.96, 0.97), (1.298, 1.299), 33, UNDECIDABLE),
        ({"null": 1.0, "says": "equal"}, None, (1.19, 1.20), 33, UNDECIDABLE),
        # "The same", as far as a clock of 17 ticks can tell.
        ({"null": 1.0, "says": "equal"}, None, (0.94, 0.95), 0.059, UNTESTED),
        ({"null": 1.0, "says": "equal"}, None, (0.95, 1.05), 0.059, HOLDS),
        ({"null": 1.0, "says": "equal"}, None, (1.1, 1.2), 0.059, FAILS),
        # A figure alone.
        ({}, (0, 0), (0.2, 0.3), 1, UNDECIDABLE),
        ({}, (0, 0), (0.2, 0.3), 0, FAILS),
        ({}, (2, 2), (2.6, 2.8), 1, UNDECIDABLE),
        ({}, (2, 2), (2.6, 3.8), 1, UNTESTED),
        ({}, (2, 2), (3.6, 3.8), 1, FAILS),
        ({}, (2, 2), (1.9, 2.1), 1, HOLDS),
    ],
)
def test_a_verdict_is_no_finer_than_the_instrument_of_the_report(more, published, ours, resolution, verdict):
    found, reason = decide(
        claim(**more), Range(*published) if published else None, interval(*ours), resolution
    )
    assert found == verdict, reason


def test_the_resolution_may_be_one_tick_as_a_part_of_what_was_measured():
    """One tick of 10 ms beside 0.3 ms of ours is 33 times the whole; beside 1 s it is a hundredth."""
    cells = {"a": Cell({1: 3.9e5, 2: 3.9e5}, {1: "", 2: ""}), "b": Cell({1: 3.0e5, 2: 3.0e5}, {1: "", 2: ""})}
    samples = Samples(
        {"s": Done(Runs("s", "kernel", {}, Size(), Size(), execution=Execution(host="kernel")))}
    )
    samples.look_up = lambda name, keys: cells[keys[1]]
    ratio, tick = (
        Measure(text, sets=["s"])
        for text in ("run['w', 'a', 'm'] / run['w', 'b', 'm']", "1e7 / run['w', 'b', 'm']")
    )
    row = replace(claim(null=1.0, published="0.96"), ours=ratio, resolution=tick)
    (decided,) = decide_all([row], {}, samples)
    assert (decided.verdict, decided.resolution) == (UNDECIDABLE, pytest.approx(33.3, abs=0.1))
    assert decided.as_json(9)["resolution"] == decided.resolution
    cells = {
        name: Cell({seed: value * 1e4 for seed, value in cell.values.items()}, cell.folders)
        for name, cell in cells.items()
    }
    assert decide_all([row], {}, samples)[0].verdict == FAILS


def test_a_direction_without_a_figure_is_decided_by_the_whole_interval():
    says = claim(null=1.0, says="below")
    assert decide(says, None, interval(0.53, 1.18)) == (
        UNTESTED,
        "our interval covers no effect (1) as well as values below it: more runs decide",
    )
    assert decide(says, None, interval(0.995, 1.18))[0] == FAILS
    assert decide(says, None, interval(0.53, 0.98))[0] == HOLDS


@pytest.mark.parametrize(
    ("text", "minimum"),
    [
        ("run['w', 'a', 'm'] / run['w', 'b', 'm']", 0),
        ("max(run['w', 'a', 'm'], 2) * 3 / 1e6", 0),
        ("abs(run['w', 'a', 'm'] - run['w', 'b', 'm'])", 0),
        ("run['w', 'a', 'm'] - run['w', 'b', 'm']", -math.inf),
        ("mean(run['w', 'a', 'm'] / run['w', 'b', 'm'] - 1)", -math.inf),
        ("-run['w', 'a', 'm'] / 2", -math.inf),
    ],
)
def test_what_cannot_be_negative_has_no_interval_below_0(text, minimum):
    """Student's interval of few seeds would reach there, and be printed."""
    cells = {"a": Cell({1: 1.0, 2: 20.0}, {1: "", 2: ""}), "b": Cell({1: 1.0, 2: 1.0}, {1: "", 2: ""})}
    runs = Runs("s", "simulator", {}, Size(), Size())
    samples = Samples({"s": Done(runs)})
    samples.look_up = lambda name, keys: cells[keys[1]]
    (decided,) = decide_all([replace(claim(published="5"), ours=Measure(text, sets=["s"]))], {}, samples)
    assert decided.sample.minimum == minimum
    assert decided.ours.low == 0 if minimum == 0 else decided.ours.low < 0
