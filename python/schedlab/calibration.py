# SPDX-License-Identifier: MIT
"""What one unit of `work` costs in CPU time, where nobody has measured it.

A workload program says how much is to be done (`pi`: terms, `matmul`:
multiply-adds, `spin`: rounds), never how long that takes. A host that runs real
code finds out by running it; the simulator is told, and this is what it is told
unless the user says otherwise. Because the figures live here and not in the
program, changing them changes no program hash.

The defaults are the machines of the reports, so that a simulated repetition of
a report starts from its own speeds:

- `spin`: report 1's round-robin baseline. Test 1 does 10 x 20 million rounds in
  87 ticks of 10 ms, test 7 does 5 x 20 million in 43.5: both are 4.35 ns.
- `matmul`: report 3, table 1, column O(1): a product of two 256 x 256 matrices
  (256**3 multiply-adds) takes 199.9 ms, the mean of four groups: 11.9 ns.
- `pi`: report 4, appendix: 20 processes of 100,000,000 terms each take 77.595
  CPU-seconds as user: 38.8 ns.

Read next: program/compiler.py, whose `work_ns` uses a calibration.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from .errors import UsageError, did_you_mean

#: Names of the kernels, in the order of `enum sl_work` in program.h.
WORK_KERNELS = ("pi", "matmul", "spin")


@dataclass(frozen=True)
class Calibration:
    """Cost of one unit of each kernel, in picoseconds of CPU time."""

    pi_ps: int = 38_800  #: One term of the Leibniz series.
    matmul_ps: int = 11_900  #: One multiply-add of a square matrix product.
    spin_ps: int = 4_350  #: One round of an empty loop.

    def __post_init__(self) -> None:
        """Refuse a cost that is not a positive whole number of picoseconds."""
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, int) or value < 1:
                raise UsageError(
                    f"{item.name} must be a whole number of picoseconds, at least 1 (got {value!r})"
                )

    def unit_ps(self, kernel: str) -> int:
        """Cost of one unit of a kernel.

        In picoseconds of CPU time; UsageError: it is none of `WORK_KERNELS`.
        """
        if kernel not in WORK_KERNELS:
            raise UsageError(f"unknown kernel {kernel!r}{did_you_mean(kernel, WORK_KERNELS)}")
        return int(getattr(self, f"{kernel}_ps"))

    def work_ns(self, kernel: str, count: int) -> int:
        """CPU time of `count` units of a kernel.

        In nanoseconds, rounded down, as the simulator does; UsageError: it is none of `WORK_KERNELS`.

        >>> DEFAULT_CALIBRATION.work_ns("spin", 20_000_000)
        87000000
        """
        return count * self.unit_ps(kernel) // 1000


DEFAULT_CALIBRATION = Calibration()
