# SPDX-License-Identifier: MIT
"""Our distribution functions are SciPy's, in the tails and at every size that a comparison has."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special as theirs

from schedlab.stats import special as ours

#: Both signs, from what rounds to nothing to far in a tail.
T = np.concatenate([sign * np.logspace(-8, 3, 100) for sign in (-1, 1)] + [np.zeros(1)])


@pytest.mark.parametrize("df", [1, 2, 5, 9, 19, 99, 999])
def test_stdtr_and_its_inverse_agree_with_scipy(df):
    wanted = theirs.stdtr(df, T)
    possible = wanted > 1e-290
    np.testing.assert_allclose(ours.stdtr(df, T)[possible], wanted[possible], rtol=1e-8 if df == 1 else 1e-11)
    for p in (0.01, 0.3, 0.5, 0.6, 0.975, 0.999):
        assert ours.stdtrit(df, p) == pytest.approx(theirs.stdtrit(df, p), rel=1e-11, abs=1e-12)


def test_ndtr_and_its_inverse_agree_with_scipy():
    z = np.linspace(-37, 9, 201)
    np.testing.assert_allclose(ours.ndtr(z), theirs.ndtr(z), rtol=1e-12)
    p = np.concatenate([np.logspace(-300, -0.1, 100), 1 - np.logspace(-15, -0.5, 100)])
    np.testing.assert_allclose(ours.ndtri(p), theirs.ndtri(p), rtol=1e-12, atol=1e-14)
    assert ours.ndtr(np.zeros((2, 3))).shape == (2, 3)


def test_stdtr_of_a_difference_that_is_no_number_is_none():
    assert math.isnan(ours.stdtr(3, math.nan))
