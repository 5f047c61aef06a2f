# SPDX-License-Identifier: MIT
"""Search for a workload and a machine on which a policy breaks a promise.

In: a policy, a budget of time.
Out: the smallest world that was found for each broken promise, as a workload that
`schedlab run` takes, with its run.
Read next: world.py, what is tried; trial.py, what is held against it; search.py.
"""
