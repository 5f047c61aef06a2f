# SPDX-License-Identifier: MIT
"""Turn raw 64-bit integers into random values, in integer arithmetic only.

A workload drawn from a seed must be the same bytes on every machine, for ever.
Library generators and the C library's `log` change between versions, so nothing
here uses them: a raw integer is a hash of (seed, task class, instance, phase,
draw), and every inverse distribution is fixed-point arithmetic on unsigned
64-bit integers. The floating-point square root below is only a first guess,
which integers then correct.

Because a value depends on where it is used and on nothing else, adding a task
to a workload leaves the numbers of the other tasks as they were, and two
variants of a workload share their randomness wherever they are alike.

Notation: Q48 is a whole number that counts units of 2**-48.

Accuracy, measured by tests/python/test_draws.py against 50-digit arithmetic:
logarithm and exponential within 2**-44; the normal deviate within 2**-40 of a
standard deviation, or within 2**-23 in the one case of 32,000 where its radius
is below 2**-7; then rounding to a whole number. `uniform` and `choice` favour
some values by less than 2**-63 times their number.

Read next: compiler.py, the only caller.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np

from ..units import TIME_MAX_NS
from ..workload.distributions import Distribution

MASK64 = 2**64 - 1
#: The odd number nearest to 2**64 divided by the golden ratio (Steele, Lea and
#: Flood 2014, "Fast splittable pseudorandom number generators").
GOLDEN = 0x9E3779B97F4A7C15
#: ln 2 in units of 2**-64.
LN2_Q64 = 0xB17217F7D1CF79AB
#: (pi / 2)**2 in units of 2**-62.
QUARTER_TURN_SQUARED_Q62 = 0x9DE9E64DF22EF2D2
#: Attempts to land between the bounds before the value is clamped to them.
ATTEMPTS_MAX = 64

#: Seeds whose values are drawn together, where each needs at most so many.
SEEDS_AHEAD = 16
VALUES_AHEAD_MAX = 256

LOG_BITS = 48
#: Digits of a logarithm that one table finds.
_TABLE_BITS = 12
# Made once: an array operation on a few numbers takes no longer than making one of these.
_LOW32, _32, _63 = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(63)
_ONE, _TWO, _GOLDEN = np.uint64(1), np.uint64(2), np.uint64(GOLDEN)
_MIX = tuple(map(np.uint64, (30, 0xBF58476D1CE4E5B9, 27, 0x94D049BB133111EB, 31)))
_LARGEST = np.uint64(2**63 - 1)
_BITS = _ONE << np.arange(64, dtype=np.uint64)


@lru_cache(maxsize=1024)
def name_key(name: str) -> int:
    """Hash a name to the integer that stands for it in a stream of draws. 64 bits of its SHA-256."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")


def stream_key(seed: int, *path: int) -> int:
    """Hash the place where a number is needed.

    `seed` is that of the run, 0 to 2**64 - 1; `path` says where: task class, phase and so on. Different
    places have unrelated keys of 64 bits.
    """
    key = _mix(seed + GOLDEN)
    for step in path:
        key = _mix(key + GOLDEN * (2 * step + 1))
    return key


def _mix(value: int) -> int:
    """Scramble 64 bits one-to-one (the finaliser of SplitMix64)."""
    value &= MASK64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK64
    return value ^ (value >> 31)


def _fold(keys: np.ndarray, step: np.ndarray | int) -> np.ndarray:
    """Do one step of `stream_key` for many keys at once."""
    if isinstance(step, int):
        z = keys + np.uint64(GOLDEN * (2 * step + 1) & MASK64)
    else:
        z = keys + _GOLDEN * (step * _TWO + _ONE)
    z = (z ^ (z >> _MIX[0])) * _MIX[1]
    z = (z ^ (z >> _MIX[2])) * _MIX[3]
    return z ^ (z >> _MIX[4])


def draw(distribution: Distribution, key: int, n_instances: int, n_draws: int = 1) -> np.ndarray:
    """Draw values for every instance of a task class.

    `key` is from `stream_key`. Returns uint64, shape (n_instances, n_draws), in the unit of the
    distribution's parameters; a row and a column are the same whatever their number.
    """
    if distribution.constant is not None:
        return np.full((n_instances, n_draws), distribution.constant, dtype=np.uint64)
    rows = _fold(np.array([key], dtype=np.uint64), np.arange(n_instances, dtype=np.uint64))
    keys = _fold(rows[:, None], np.arange(n_draws, dtype=np.uint64)[None, :]).ravel()
    return _draw(distribution, keys).reshape(n_instances, n_draws)


def draw_for_seed(
    distribution: Distribution,
    seed: int,
    paths: tuple[tuple[int, ...], ...],
    counts: tuple[int, ...],
    n_draws: int = 1,
) -> np.ndarray:
    """Draw values for every instance of several task classes.

    `paths` has where the numbers of each class are used, as for `stream_key`, and `counts` its instances.
    Returns uint64, shape (sum of counts, n_draws): what `draw` returns, for one class after the other; not
    to be written. A sweep asks for one seed after the other, and drawing some hundred values takes no
    longer than drawing one: those of `SEEDS_AHEAD` seeds are drawn together.
    """
    if sum(counts) * n_draws > VALUES_AHEAD_MAX or distribution.constant is not None:
        keys = [stream_key(seed, *path) for path in paths]
        return np.concatenate(
            [draw(distribution, key, count, n_draws) for key, count in zip(keys, counts, strict=True)]
        )
    first = seed // SEEDS_AHEAD * SEEDS_AHEAD
    return _drawn_ahead(distribution, first, paths, counts, n_draws)[seed - first]


@lru_cache(maxsize=256)
def _drawn_ahead(
    distribution: Distribution,
    first_seed: int,
    paths: tuple[tuple[int, ...], ...],
    counts: tuple[int, ...],
    n_draws: int,
) -> np.ndarray:
    """The values for some seeds; shape (SEEDS_AHEAD, sum of counts, n_draws)."""
    keys = np.array(
        [[stream_key(first_seed + i, *path) for path in paths] for i in range(SEEDS_AHEAD)], dtype=np.uint64
    )
    number = np.concatenate([np.arange(count, dtype=np.uint64) for count in counts])
    rows = _fold(np.repeat(keys, counts, axis=1), number)
    columns = _fold(rows[:, :, None], np.arange(n_draws, dtype=np.uint64))
    values = _draw(distribution, columns.ravel()).reshape(columns.shape)
    values.flags.writeable = False
    return values


def _draw(distribution: Distribution, keys: np.ndarray) -> np.ndarray:
    """Draw one value per key, between the bounds."""
    values = _sample(distribution, keys, attempt=0)
    low, high = np.uint64(distribution.low), np.uint64(distribution.high)
    for attempt in range(1, ATTEMPTS_MAX):
        outside = np.flatnonzero((values < low) | (values > high))
        if not len(outside):
            break
        values[outside] = _sample(distribution, keys[outside], attempt=attempt)
    is_negative = values > _LARGEST
    return np.where(is_negative, low, np.minimum(np.maximum(values, low), high))


def _sample(distribution: Distribution, keys: np.ndarray, *, attempt: int) -> np.ndarray:
    """Draw one value per key; `attempt` numbers the repetitions."""
    kind, values = distribution.kind, distribution.values
    raw = _fold(keys, 2 * attempt)
    if kind == "uniform":
        span = values[1] - values[0] + 1
        return np.uint64(values[0]) + _multiply(raw, np.uint64(span))[0]
    if kind == "choice":
        picked = _multiply(raw, np.uint64(len(values)))[0]
        return np.array(values, dtype=np.uint64)[picked]
    if kind == "exp":
        return multiply_shift(minus_ln_q48(raw), np.uint64(values[0]), LOG_BITS)
    if kind == "pareto":
        exponent = multiply_shift(minus_log2_q48(raw), _fixed(1 / distribution.shape, 32), 32)
        return _times_power_of_two(values[0], exponent.astype(np.int64))
    size, negative = normal_q48(raw, _fold(keys, 2 * attempt + 1))
    if kind == "normal":
        offset = multiply_shift(size, np.uint64(values[1]), LOG_BITS)
        # A value below zero wraps to above TIME_MAX_NS: outside, so drawn again.
        return np.where(negative, np.uint64(values[0]) - offset, np.uint64(values[0]) + offset)
    scale = _fixed(distribution.shape * 2**64 / LN2_Q64, 32)
    exponent = np.minimum(multiply_shift(size, scale, 32), np.uint64(2**62)).astype(np.int64)
    return _times_power_of_two(values[0], np.where(negative, -exponent, exponent))


def _fixed(value: Fraction | int, bits: int) -> np.uint64:
    """Round a positive fraction to a multiple of 2**-bits, at least one."""
    return np.uint64(max(1, min(round(value * 2**bits), MASK64)))


def _multiply(a: np.ndarray, b: np.ndarray | np.uint64) -> tuple[np.ndarray, np.ndarray]:
    """Full product of 64-bit numbers: the high and the low 64 bits."""
    a_high, a_low = a >> _32, a & _LOW32
    b_high, b_low = b >> _32, b & _LOW32
    low, middle_a, middle_b = a_low * b_low, a_high * b_low, a_low * b_high
    carry = (low >> _32) + (middle_a & _LOW32) + (middle_b & _LOW32)
    high = a_high * b_high + (middle_a >> _32) + (middle_b >> _32)
    return high + (carry >> _32), (carry << _32) | (low & _LOW32)


def multiply_shift(a: np.ndarray, b: np.ndarray | np.uint64, shift: int) -> np.ndarray:
    """Multiply in fixed point, ``a * b / 2**shift``, rounded to nearest.

    Factors are uint64 of any size, `shift` is 1 to 64; what is larger than `TIME_MAX_NS` becomes
    `TIME_MAX_NS`.
    """
    high, rounded = _rounded_product(a, b, shift)
    too_large = (high >> np.uint64(shift - 1)) != 0
    result = high if shift == 64 else _shifted(high, rounded, shift)
    return np.where(too_large, np.uint64(TIME_MAX_NS), np.minimum(result, np.uint64(TIME_MAX_NS)))


def _rounded_product(a: np.ndarray, b: np.ndarray | np.uint64, shift: int) -> tuple[np.ndarray, np.ndarray]:
    """Full product plus half of 2**shift."""
    high, low = _multiply(a, b)
    rounded = low + np.uint64(1 << (shift - 1))
    return high + (rounded < low).astype(np.uint64), rounded


def _shifted(high: np.ndarray, low: np.ndarray, shift: int) -> np.ndarray:
    return (high << np.uint64(64 - shift)) | (low >> np.uint64(shift))


def minus_log2_q48(raw: np.ndarray) -> np.ndarray:
    """Take minus the binary logarithm of a uniform number.

    `raw`, uint64, stands for u = (raw | 1) / 2**64, which is never 0 and never 1. Returns -log2(u) in units
    of 2**-48, uint64 from 0 to 64 * 2**48. With u = y * 2**-(k + 1) and 1 <= y < 2, squaring y doubles its
    logarithm: whether the square reaches 2 is the next binary digit, and so on.
    """
    word = raw | _ONE
    zeros = (64 - np.searchsorted(_BITS, word, side="right")).astype(np.uint64)
    return ((zeros + _ONE) << np.uint64(LOG_BITS)) - _log2_digits(word << zeros)


def _log2_digits(word: np.ndarray) -> np.ndarray:
    """The digits that `_log2_by_squaring` finds, for many words at once.

    Two tables of powers take away 12 digits each; a series gives the others. With squaring's
    own, all errors together are below 2**-12.9 of the last digit. So the two agree but where
    what follows the last digit is nearer to a whole number, and there squaring decides.
    """
    rest, digits = word, np.zeros_like(word)
    for step in (_TABLE_BITS, 2 * _TABLE_BITS):
        powers, inverses = _powers_of_two(step)
        index = np.searchsorted(powers, rest, side="right") - 1
        reduced = np.maximum(_multiply(rest, inverses[index])[0], np.uint64(1 << 63))
        rest = np.where(index == 0, rest, reduced)
        digits = (digits << np.uint64(_TABLE_BITS)) | index.astype(np.uint64)
    # log2(1 + e) = (e - e**2 / 2 + ...) / ln 2, where e is below 2**-24; what is left out, below 2**-74.
    excess = (rest - np.uint64(1 << 63)) << np.uint64(24)  # units of 2**-87
    half_square = _multiply(excess, excess)[0] >> np.uint64(24)
    tail = _multiply(excess - half_square, np.uint64((1 << 127) // LN2_Q64))[0]  # units of 2**-86
    digits = (digits << np.uint64(24)) + (tail >> np.uint64(38))
    near = ((tail + np.uint64(1 << 26)) & np.uint64((1 << 38) - 1)) < np.uint64(1 << 27)
    for i in np.flatnonzero(near).tolist():
        digits[i] = _log2_by_squaring(int(word[i]))
    return digits


def _log2_by_squaring(word: int) -> int:
    """Binary digits of log2(word / 2**63), for a word from 2**63 on; this is the definition."""
    digits = 0
    for _ in range(LOG_BITS):
        square = word * word
        reached_two = square >> 127
        word = square >> 63 + reached_two
        digits = digits << 1 | reached_two
    return digits


@cache
def _powers_of_two(step: int) -> tuple[np.ndarray, np.ndarray]:
    """2**(j * 2**-step) in units of 2**-63 and its inverse in units of 2**-64; entry 0 of that is not used."""
    root, one = 2 << 127, 1 << 127
    for _ in range(step):
        root = math.isqrt(root << 127)
    powers, power = [], one
    for _ in range(1 << _TABLE_BITS):
        powers.append(power)
        power = power * root >> 127
    inverses = [0, *((1 << 191) // power for power in powers[1:])]
    return np.array([power >> 64 for power in powers], np.uint64), np.array(inverses, np.uint64)


def minus_ln_q48(raw: np.ndarray) -> np.ndarray:
    """Take minus the natural logarithm of a uniform number: an exponential deviate.

    `raw` is as for `minus_log2_q48`; in units of 2**-48, from 0 to 44.4.
    """
    return multiply_shift(minus_log2_q48(raw), np.uint64(LN2_Q64), 64)


def normal_q48(raw: np.ndarray, angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw a normal deviate by the method of Box and Muller (1958).

    `raw` gives the radius; the highest bit of `angle` gives the sign, the others the place in a quarter
    turn. The absolute value in units of 2**-48 (uint64), and whether the deviate is negative.
    """
    radius = _sqrt_q48(minus_ln_q48(raw) << np.uint64(1))
    cosine = _cosine_of_quarter_q62((angle << _ONE) | _ONE)
    return multiply_shift(radius, cosine, 62), (angle >> np.uint64(63)) != 0


def _sqrt_q48(value_q48: np.ndarray) -> np.ndarray:
    """Square root of a number below 128, both in units of 2**-48."""
    scaled = value_q48 << np.uint64(8)  # units of 2**-56, below 2**63
    root = np.sqrt(scaled.astype(np.float64)).astype(np.uint64)
    # The guess may be one off after rounding to 53 bits; make it the floor.
    root -= (root * root > scaled).astype(np.uint64)
    root += ((root + _ONE) * (root + _ONE) <= scaled).astype(np.uint64)
    # One step of Heron's method gives the digits after the point.
    rest = ((scaled - root * root) << np.uint64(30)) // np.maximum(root, _ONE)
    return (root << np.uint64(20)) + (rest >> np.uint64(11))


def _cosine_of_quarter_q62(place: np.ndarray) -> np.ndarray:
    """Cosine of (place / 2**64) quarter turns, in units of 2**-62."""
    one = np.uint64(1 << 62)
    square = _multiply(_multiply(place, place)[0], np.uint64(QUARTER_TURN_SQUARED_Q62))[0]
    cosine = np.full_like(place, one)
    for k in range(13, 0, -1):  # the terms left out are below 2**-80
        # At most 2.5 in units of 2**-62: it fits, so nothing may be cut off here.
        product = _shifted(*_rounded_product(square, cosine, 62), 62)
        term = product // np.uint64((2 * k - 1) * 2 * k)
        cosine = one - np.minimum(term, one)
    return cosine


def _roots_of_two_q63() -> list[int]:
    """2**(1/2), 2**(1/4), 2**(1/8) ... in units of 2**-63."""
    wide, roots = 2 << 126, []
    for _ in range(LOG_BITS):
        wide = math.isqrt(wide << 126)
        roots.append(wide >> 63)
    return roots


def _times_power_of_two(factor: int, exponent_q48: np.ndarray) -> np.ndarray:
    """``factor * 2**exponent``, rounded down, at most `TIME_MAX_NS`.

    `exponent_q48` is signed, in units of 2**-48.
    """
    fraction = (exponent_q48 & ((1 << LOG_BITS) - 1)).astype(np.uint64)
    power = np.full(fraction.shape, np.uint64(1 << 63))
    for i, root in enumerate(_roots_of_two_q63()):
        is_set = (fraction >> np.uint64(LOG_BITS - 1 - i)) & _ONE
        high, low = _multiply(power, np.uint64(root))
        power = np.where(is_set, (high << _ONE) | (low >> np.uint64(63)), power)
    high, low = _multiply(power, np.uint64(factor))
    # The product has 63 binary places; whole powers of two only shift them.
    down = 63 - (exponent_q48 >> LOG_BITS)
    left = np.clip(64 - down, 0, 63).astype(np.uint64)
    right = np.clip(down, 0, 63).astype(np.uint64)
    near = (high << left) | (low >> right)
    far = high >> np.clip(down - 64, 0, 63).astype(np.uint64)
    result = np.where(down < 64, near, np.where(down < 128, far, np.uint64(0)))
    lost = (down < 64) & ((high >> np.clip(down - 1, 0, 63).astype(np.uint64)) != 0)
    too_large = (down <= 0) | lost
    return np.where(too_large, np.uint64(TIME_MAX_NS), result)
