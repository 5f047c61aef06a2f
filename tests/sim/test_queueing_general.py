# SPDX-License-Identifier: MIT
"""The simulator against queueing theory: general service times, several CPUs.

M/G/1: the mean stay follows from the first two moments of the service time
(Pollaczek 1930, Khinchine 1932), and under processor sharing from the first
alone. M/M/c: Erlang's C. Each is compared within regenerative intervals, as in
test_queueing.py: a cycle begins with an arrival that finds all CPUs idle,
whatever the policy and the number of CPUs.

What M/M/1 cannot see, these do: a second moment that is wrong (service times
drawn from another distribution of the same mean), a CPU that idles beside a
waiting task, a queue per CPU where one was meant, an order that depends on the
size of a task.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from schedlab.records.file import read_records
from schedlab.runs.run import make_plan, run_plan
from sim.test_queueing import regenerative_interval, stays

pytestmark = pytest.mark.full

NR_SEEDS = 60
NR_TASKS = 4000
#: Two-sided 99.9 %: for the one interval over the cycles of all seeds.
Z_ALL = 3.29

QUEUE = """
[workload]
title = "A queue: Poisson arrivals, {service}"
question = "Do the means agree with queueing theory?"
tick = "{tick}"
jitter = "0ms"
[[task]]
name = "customer"
count = {count}
arrival = "poisson({between_ns}ns)"
burst = "run"
phases = [{{run = "{service}"}}]
"""


@dataclass(frozen=True)
class Service:
    """A service time and its moments."""

    text: str  #: As a workload says it.
    mean_ms: float  #: First moment in milliseconds.
    square_ms2: float  #: Second moment in square milliseconds.


SIGMA = 0.9
SERVICES = {
    "deterministic": Service("10ms", 10, 100),
    "uniform": Service("uniform(0ms, 20ms)", 10, 400 / 3),
    "exponential": Service("exp(10ms)", 10, 200),
    # Three in four are short: a variance nearly twice that of the exponential.
    "two-point": Service("choice(2ms, 2ms, 2ms, 34ms)", 10, (3 * 2**2 + 34**2) / 4),
    "lognormal": Service(f"lognormal(6ms, {SIGMA})", 6 * math.exp(SIGMA**2 / 2), 36 * math.exp(2 * SIGMA**2)),
}


def first_come_first_served_ms(service: Service, rho: float) -> float:
    """Mean stay in M/G/1 by Pollaczek and Khinchine, in milliseconds."""
    rate = rho / service.mean_ms
    return service.mean_ms + rate * service.square_ms2 / (2 * (1 - rho))


def erlang_c(n_servers: int, offered: float) -> float:
    """Probability that an arrival has to wait in M/M/c; `offered` in Erlang."""
    terms = [offered**k / math.factorial(k) for k in range(n_servers)]
    last = offered**n_servers / math.factorial(n_servers) / (1 - offered / n_servers)
    return last / (sum(terms) + last)


def several_servers_ms(mean_ms: float, n_servers: int, rho: float) -> float:
    """Mean stay in M/M/c with `rho` per server, in milliseconds."""
    wait = erlang_c(n_servers, rho * n_servers) * mean_ms / (n_servers * (1 - rho))
    return mean_ms + wait


@pytest.fixture
def simulate(simulator, tmp_path):
    """Function that runs a queue; arrivals and ends of each seed, in nanoseconds."""

    def run(service: Service, policy: str, *, rho, cpus=1, tick="1ms", settings=(), n_seeds=NR_SEEDS):
        workload = tmp_path / "queue.toml"
        between_ns = round(service.mean_ms * 1e6 / (rho * cpus))
        workload.write_text(
            QUEUE.format(service=service.text, count=NR_TASKS, between_ns=between_ns, tick=tick)
        )
        plan = make_plan(
            workloads=[str(workload)],
            policies=[policy],
            settings=list(settings),
            cpus=cpus,
            out=tmp_path / "runs",
            n_seeds=n_seeds,
            keep_parquet=False,
        )
        result = run_plan(plan)
        assert result.is_good, [run["error"] for run in result.runs if run["error"]][:3]
        found = [stays(read_records(f"{run['directory']}/records.slr")) for run in result.runs]
        assert [len(arrived) for arrived, _ in found] == [NR_TASKS] * n_seeds
        return found

    return run


def assert_mean_stay(found, theory_ms: float) -> None:
    """Intervals of single seeds hold the mean as often as they claim; so does that of all."""
    theory_ns, n_runs = theory_ms * 1e6, len(found)
    intervals = [regenerative_interval(arrived, ended) for arrived, ended in found]
    held = sum(low <= theory_ns <= high for _, low, high in intervals)
    # Four standard deviations: fewer have a probability below 0.001 (binomial).
    held_min = math.floor(0.95 * n_runs - 4 * math.sqrt(0.95 * 0.05 * n_runs))
    assert held >= held_min, f"{held} of {n_runs} intervals hold {theory_ms} ms"
    # One sample of all seeds: each is moved behind the end of the one before,
    # so that its first arrival finds all CPUs idle, as in fact it does. The last
    # cycle of each is cut off after the last task, one cycle in some hundreds.
    offset, arrivals, ends = 0, [], []
    for arrived, ended in found:
        arrivals.append(arrived + offset)
        ends.append(ended + offset)
        offset += int(ended.max())
    estimate, low, high = regenerative_interval(np.concatenate(arrivals), np.concatenate(ends), z=Z_ALL)
    assert low <= theory_ns <= high, f"{theory_ms} ms is not in {low / 1e6} to {high / 1e6} ms"
    assert high - low < 0.1 * estimate, "an interval so wide would hold anything"


def test_formulas_agree_where_they_meet():
    """M/M/1 is both an M/G/1 and an M/M/c; Erlang's C by a textbook's table."""
    service = SERVICES["exponential"]
    assert first_come_first_served_ms(service, 0.5) == pytest.approx(20)
    assert several_servers_ms(10, 1, 0.5) == pytest.approx(20)
    # Two servers: C = 2 rho^2 / (1 + rho).
    assert erlang_c(2, 1.2) == pytest.approx(2 * 0.36 / 1.6)
    assert erlang_c(4, 3.0) == pytest.approx(0.5094, abs=1e-4)


@pytest.mark.parametrize("name", ["deterministic", "uniform", "two-point", "lognormal"])
def test_mg1_first_come_first_served(simulate, name):
    service = SERVICES[name]
    found = simulate(service, "fifo", rho=0.5)
    assert_mean_stay(found, first_come_first_served_ms(service, 0.5))
    # The intervals can tell: no other service time explains these stays.
    for other in SERVICES.values():
        if other is not service:
            with pytest.raises(AssertionError):
                assert_mean_stay(found, first_come_first_served_ms(other, 0.5))


@pytest.mark.parametrize(("cpus", "rho"), [(2, 0.6), (4, 0.6)])
def test_mmc(simulate, cpus, rho):
    found = simulate(SERVICES["exponential"], "fifo", rho=rho, cpus=cpus)
    assert_mean_stay(found, several_servers_ms(10, cpus, rho))


@pytest.mark.parametrize("name", ["deterministic", "two-point"])
def test_processor_sharing_sees_only_the_mean(simulate, name):
    """Round-robin with a tiny quantum: mean / (1 - rho), whatever the variance (Kleinrock 1967)."""
    found = simulate(SERVICES[name], "rr", rho=0.5, tick="100us", settings=["rr.slice_ns=100us"], n_seeds=20)
    assert_mean_stay(found, SERVICES[name].mean_ms / 0.5)
