# SPDX-License-Identifier: MIT
"""What a reader must know about the Linux machine that a measurement was made on.

Reads and never changes anything. What may disturb a measurement comes
back as a warning with its hint.

Must stay true: a file that is not there, or may not be read, is no error.
Read next: measure/bench.py, which reports both.
"""

from __future__ import annotations

import gzip
import os
import platform
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ...policy.linux_class import LinuxClass

#: Load of other programs, per CPU, above which a comparison is disturbed.
LOAD_MAX = 0.3


def processor_name() -> str:
    """Name of the processor as the kernel tells it; of its kind where it does not."""
    model = re.search(r"^model name\s*:\s*(.*)$", read_small("/proc/cpuinfo") or "", re.MULTILINE)
    return model[1] if model else platform.machine()


def describe_machine() -> dict[str, Any]:
    """Read what matters for scheduling.

    `kernel`, `cpu`, `cpus`, `cpus_allowed`, `is_virtual`, `governors`, `has_turbo`, `rt_period_us`,
    `rt_runtime_us` (-1: no limit), `has_rt_groups` (built with CONFIG_RT_GROUP_SCHED), `fair_server_ns`
    (per CPU; None: not known), `is_autogroup`, `load_1min`, `has_sched_ext`. None where the machine does
    not say.
    """
    cpuinfo = read_small("/proc/cpuinfo") or ""
    governors = {
        read_small(path)
        for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    }
    return {
        "kernel": platform.release(),
        "cpu": processor_name(),
        "cpus": os.cpu_count(),
        "cpus_allowed": sorted(os.sched_getaffinity(0)),
        "is_virtual": bool(re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE)),
        "governors": sorted(governor for governor in governors if governor),
        "has_turbo": _turbo(),
        "rt_period_us": _number("/proc/sys/kernel/sched_rt_period_us"),
        "rt_runtime_us": _number("/proc/sys/kernel/sched_rt_runtime_us"),
        "has_rt_groups": _has_rt_groups(),
        "fair_server_ns": _number("/sys/kernel/debug/sched/fair_server/cpu0/runtime"),
        "is_autogroup": _number("/proc/sys/kernel/sched_autogroup_enabled") == 1,
        "load_1min": os.getloadavg()[0],
        "has_sched_ext": Path("/sys/kernel/sched_ext").is_dir(),
    }


def warn_of_machine(machine: dict[str, Any], classes: list[LinuxClass]) -> list[dict[str, Any]]:
    """Say what about this machine may mislead a reader."""
    found = []

    def warning(kind: str, text: str, hint: str) -> None:
        found.append({"kind": kind, "text": text, "hint": hint})

    if machine["is_virtual"]:
        warning(
            "virtual machine",
            "the hypervisor may take CPUs away, which looks like slow commands",
            "compare within this run only; for figures to publish, use a machine of your own",
        )
    odd = [governor for governor in machine["governors"] if governor != "performance"]
    if odd:
        warning(
            "governor",
            f"the CPUs' clock follows the load (governor {', '.join(odd)})",
            "cpupower frequency-set -g performance, and back afterwards",
        )
    if machine["has_turbo"]:
        warning(
            "turbo",
            "the CPUs' clock depends on temperature and on neighbours",
            "switch turbo off in the BIOS or through cpufreq while you measure",
        )
    if machine["load_1min"] > LOAD_MAX * machine["cpus"]:
        warning(
            "load",
            f"other programs are running (load {machine['load_1min']:.1f} on {machine['cpus']} CPUs)",
            "end them, or measure again later",
        )
    _warn_of_realtime(machine, classes, warning)
    if machine["is_autogroup"] and any(each.nice for each in classes):
        warning(
            "autogroup",
            "nice values act within a session only, since autogroup is on",
            "echo 0 > /proc/sys/kernel/sched_autogroup_enabled, and back afterwards",
        )
    return found


def _warn_of_realtime(
    machine: dict[str, Any], classes: list[LinuxClass], warning: Callable[..., None]
) -> None:
    """What Linux takes from real-time tasks."""
    if not any(each.priority for each in classes):
        return
    period_us, runtime_us = machine["rt_period_us"], machine["rt_runtime_us"]
    is_new = release_number(machine["kernel"]) >= (6, 12)
    if (
        (not is_new or machine.get("has_rt_groups"))
        and runtime_us is not None
        and period_us
        and 0 <= runtime_us < period_us
    ):
        warning(
            "throttling",
            f"real-time tasks get at most {runtime_us / period_us:.0%} of a CPU "
            f"({runtime_us:,} of {period_us:,} us), which then is idle, although they wait",
            "a CPU-bound real-time command takes longer for that, not for its policy; "
            f"`sysctl kernel.sched_rt_runtime_us=-1` ends it, and {runtime_us} restores it",
        )
    if is_new and machine["fair_server_ns"] != 0:
        share = f"{machine['fair_server_ns'] / 1e6:.0f} ms" if machine["fair_server_ns"] else "part"
        warning(
            "fair server",
            f"since Linux 6.12 other tasks that starve get {share} of each second "
            + ("" if machine["fair_server_ns"] else "(50 ms unless changed) ")
            + "beside real-time ones",
            "mind it in what a CPU-bound real-time command takes",
        )


def release_number(release: str) -> tuple[int, ...]:
    """The first two numbers of a kernel's name."""
    return tuple(int(part) for part in re.findall(r"\d+", release)[:2])


@cache
def _has_rt_groups() -> bool | None:
    """Whether the kernel was built with CONFIG_RT_GROUP_SCHED, and so throttles real-time tasks from 6.12 on, too."""
    for path, opener in (("/proc/config.gz", gzip.open), (f"/boot/config-{platform.release()}", open)):
        try:
            with opener(path, "rt") as file:
                return "CONFIG_RT_GROUP_SCHED=y" in file.read()
        except (OSError, UnicodeDecodeError):
            continue
    return None


def _turbo() -> bool | None:
    """Whether the clock may go beyond its nominal rate."""
    no_turbo = _number("/sys/devices/system/cpu/intel_pstate/no_turbo")
    if no_turbo is not None:
        return not no_turbo
    boost = _number("/sys/devices/system/cpu/cpufreq/boost")
    return None if boost is None else bool(boost)


def read_small(path: str | Path) -> str | None:
    """A small file's text without its end of line."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _number(path: str) -> int | None:
    """A small file's number."""
    text = read_small(path)
    return int(text) if text and re.fullmatch(r"-?\d+", text) else None


#: Columns of a CPU's line in /proc/stat: user, nice, system, irq and softirq; guests' time is in the first two.
_BUSY, _STEAL = (1, 2, 3, 6, 7), (8,)


def find_group(name: str, *, mounts: Path = Path("/proc/mounts")) -> Path | None:
    """Find the folder of a cgroup: `/x` of the unified hierarchy, else of `cpu`, else of any."""
    found = []
    for line in (read_small(mounts) or "").splitlines():
        _, place, kind, options, *_ = line.split()
        folder = Path(place.replace("\\040", " ")) / name.lstrip("/")
        if kind in ("cgroup", "cgroup2") and (folder / "cgroup.procs").is_file():
            found.append((kind != "cgroup2", "cpu" not in options.split(","), folder))
    return min(found)[2] if found else None


def busy_by_cpu() -> dict[int, int]:
    """Read what processes and interrupts have had of each CPU since the machine's start."""
    return _ticks_by_cpu(_BUSY)


def steal_by_cpu() -> dict[int, int]:
    """Read what the hypervisor has taken of each CPU since the machine's start."""
    return _ticks_by_cpu(_STEAL)


def _ticks_by_cpu(columns: tuple[int, ...]) -> dict[int, int]:
    """Sum of some columns of /proc/stat, in nanoseconds."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    found = {}
    for line in (read_small("/proc/stat") or "").splitlines():
        words = line.split()
        if words and words[0][:3] == "cpu" and words[0][3:].isdecimal() and len(words) > max(columns):
            found[int(words[0][3:])] = sum(int(words[column]) for column in columns) * tick_ns
    return found


def steal_since(before: dict[int, int]) -> dict[int, int]:
    """What the hypervisor has taken of each CPU since `steal_by_cpu` was asked."""
    return time_since(before, steal_by_cpu())


def time_since(before: dict[int, int], after: dict[int, int]) -> dict[int, int]:
    """What was added to each CPU's time between two readings, in nanoseconds."""
    return {cpu: max(ns - before[cpu], 0) for cpu, ns in after.items() if cpu in before}
