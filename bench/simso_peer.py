# SPDX-License-Identifier: MIT
"""Time SimSo, the peer that is on PyPI, on the work that selfbench gives schedlab-sim.

Runs in SimSo's own virtual environment, started by selfbench.py, and prints one
JSON object. SimSo knows periodic tasks only: 100 tasks of 1 ms that take turns
on 4 CPUs each run once in 25 ms, so that is their period here. A switch is a
context that a processor loads.
"""

import json
import sys
import time

from simso.configuration import Configuration
from simso.core import Model


def main(duration_ms: int) -> None:
    """Simulate, and print switches and the CPU time that they took."""
    configuration = Configuration()
    configuration.duration = duration_ms * configuration.cycles_per_ms
    for number in range(100):
        configuration.add_task(
            name=f"T{number}", identifier=number, period=25, activation_date=0, wcet=1, deadline=25
        )
    for number in range(4):
        configuration.add_processor(name=f"CPU {number}", identifier=number)
    configuration.scheduler_info.clas = "simso.schedulers.RM"
    configuration.check_all()
    model = Model(configuration)
    begin = time.process_time()
    model.run_model()
    seconds = time.process_time() - begin
    switches = sum(p.context_load_count for p in model.results.processors.values())
    print(json.dumps({"switches": switches, "cpu_seconds": seconds}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
