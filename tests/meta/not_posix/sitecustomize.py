# SPDX-License-Identifier: MIT
"""Python as it is where there is no POSIX, for schedlab's own modules: `import os` and the like bring less.

The standard library goes on as it is, which has another half for such systems.
Used by test_wheel.py, with this folder in PYTHONPATH.
"""

import builtins
import os
import signal
import sys

MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    os: """O_CLOEXEC O_DIRECTORY O_NOCTTY O_NONBLOCK O_PATH SCHED_BATCH SCHED_FIFO SCHED_IDLE SCHED_OTHER SCHED_RR
        WNOHANG chown fchmod fork forkpty getegid geteuid getgid getloadavg getpgid getpriority getresuid getuid
        initgroups killpg lchown mkfifo mknod nice pidfd_open posix_fadvise posix_fallocate posix_spawn pread preadv
        pwrite sched_get_priority_max sched_getaffinity sched_getscheduler sched_param sched_setaffinity
        sched_setscheduler sched_yield set_blocking setegid seteuid setgid setgroups setpgid setpriority setsid setuid
        statvfs sync sysconf tcgetpgrp uname wait wait3 wait4 waitid""",
    signal: """SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2 SIGWINCH alarm
        pause pthread_kill pthread_sigmask setitimer sigpending sigtimedwait sigwait""",
    sys: "",
}
INSTEAD = {os: {"name": "nt"}, sys: {"platform": "win32"}}


class Without:
    """A module without some names, and with others."""

    def __init__(self, module, names, values):
        self.__dict__.update(_module=module, _names=frozenset(names.split()), _values=values)

    def __getattr__(self, name):
        if name in self._names:
            raise AttributeError(f"module {self._module.__name__!r} has no {name!r} on this system")
        return self._values[name] if name in self._values else getattr(self._module, name)

    def __setattr__(self, name, value):
        setattr(self._module, name, value)


REDUCED = {
    module.__name__: Without(module, names, INSTEAD.get(module, {})) for module, names in NAMES.items()
}
found = builtins.__import__


def find(name, globals=None, locals=None, fromlist=(), level=0):
    """Import for schedlab what a system without POSIX has."""
    own = (globals or {}).get("__name__") or ""
    if level or own.partition(".")[0] != "schedlab":
        return found(name, globals, locals, fromlist, level)
    if name in MODULES:
        raise ModuleNotFoundError(f"no module named {name!r} on this system")
    if name not in REDUCED:
        return found(name, globals, locals, fromlist, level)
    for each in fromlist or ():
        getattr(REDUCED[name], each)
    return REDUCED[name]


builtins.__import__ = find
