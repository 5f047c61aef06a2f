# SPDX-License-Identifier: MIT
"""Which host is meant by a name, and whether it can be used here.

A host is imported when it is asked for: the command line answers at once.
Read next: sim.py, the first of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..errors import NotFoundError, UnavailableError, UsageError, did_you_mean
from .host import Host

#: What a user may write after `--host`.
HOST_NAMES = ("sim", "uthreads", "kernel", "linux", "guest")


def _sim() -> Host:
    """Import the simulator's driver only when it is asked for."""
    from .sim import SimHost

    return SimHost()


def _kernel() -> Host:
    """The same for the teaching kernel's."""
    from .kernel import KernelHost

    return KernelHost()


def _uthreads() -> Host:
    """The same for user threads."""
    from .uthreads import UthreadsHost

    return UthreadsHost()


def _linux() -> Host:
    """The same for Linux's own classes."""
    from .linux import LinuxHost

    return LinuxHost()


def _guest() -> Host:
    """The same for Linux in a virtual machine."""
    from .guest_host import GuestHost

    return GuestHost()


_BUILT: dict[str, Callable[[], Host]] = {
    "sim": _sim, "kernel": _kernel, "uthreads": _uthreads, "linux": _linux, "guest": _guest,
}  # fmt: skip


#: Options that a host may have, and which have a meaning on each; all others are every host's.
OPTIONS = {
    "sim": ("--cost", "--io", "--topology", "--tick"),
    "uthreads": ("--topology", "--tick"),
    "kernel": ("--io", "--topology", "--tick", "--parallel"),
    "linux": ("--threads",),
    "guest": ("--io", "--parallel", "--kernel"),
}


def why_no_option(host: str, option: str) -> str | None:
    """Why an option cannot be given for a host: what it ignored would be believed.

    Parameters
    ----------
    host : str
        One of `HOST_NAMES`.
    option : str
        One that not all hosts have, such as `"--cost"`.

    Returns
    -------
    str or None
        The refusal, with the hosts that have it; None where it means something.

    Examples
    --------
    >>> why_no_option("linux", "--cost")
    '--cost means nothing on --host linux; hosts that have it: sim'
    """
    if option in OPTIONS[host]:
        return None
    others = ", ".join(name for name, known in OPTIONS.items() if option in known)
    return f"{option} means nothing on --host {host}; hosts that have it: {others}"


def unavailable_reason(name: str) -> str | None:
    """Why a host cannot be used here.

    Parameters
    ----------
    name : str
        One of `HOST_NAMES`.

    Returns
    -------
    str or None
        The reason with its remedy, or None when the host can be used.

    Raises
    ------
    NotFoundError
        If there is no host of that name; the message has the nearest one.
    """
    if name in _BUILT:
        return _BUILT[name]().unavailable()
    raise NotFoundError(f"unknown host '{name}'{did_you_mean(name, HOST_NAMES)}")


def in_parallel(host: Host) -> Host:
    """Get the same host in this machine's time, with its CPUs where it can have them.

    Parameters
    ----------
    host : Host
        One that emulates its CPUs, in turns unless told otherwise.

    Returns
    -------
    Host
        Its times are real, so equal jobs give different runs.

    Raises
    ------
    UsageError
        If the host has no such way to run.
    """
    if reason := why_no_option(host.name, "--parallel"):
        raise UsageError(reason)
    return replace(host, is_parallel=True)


def with_kernel(host: Host, kernel: Path) -> Host:
    """Get the same host with another kernel.

    Parameters
    ----------
    host : Host
        One that boots a Linux kernel.
    kernel : pathlib.Path
        A bootable image.

    Returns
    -------
    Host
        It says what is wrong with the image when it is used.

    Raises
    ------
    UsageError
        If the host boots none.
    """
    if reason := why_no_option(host.name, "--kernel"):
        raise UsageError(reason)
    return replace(host, kernel=kernel)


def open_host(name: str) -> Host:
    """Get a host that can be used here.

    Parameters
    ----------
    name : str
        One of `HOST_NAMES`.

    Returns
    -------
    Host
        Ready for sessions.

    Raises
    ------
    NotFoundError
        If there is no host of that name.
    UnavailableError
        If it cannot be used here; the message has the reason and the remedy.
    """
    reason = unavailable_reason(name)
    if reason is not None:
        raise UnavailableError(f"host '{name}' is unavailable here: {reason}")
    return _BUILT[name]()
