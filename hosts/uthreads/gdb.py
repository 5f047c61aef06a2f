# SPDX-License-Identifier: MIT
"""A command for gdb: what every thread of the library does, with its stack.

    (gdb) source hosts/uthreads/gdb.py
    (gdb) ut-threads

gdb knows kernel threads only. A thread that does not run is a stack pointer and what
context_x86_64.S left there, so its registers are shown to gdb for the time of a
backtrace. It needs a process, not a core file, and x86-64.

Read next: context_x86_64.S.
"""

import gdb

#: Where ut_switch() leaves each register, from the saved stack pointer on.
SAVED = {"r15": 8, "r14": 16, "r13": 24, "r12": 32, "rbx": 40, "rbp": 48, "rip": 56}
FRAME_BYTES = 64


def registers_of(sp: int) -> dict[str, int]:
    """Registers of a context that was left with this stack pointer."""
    word = gdb.lookup_type("unsigned long").pointer()
    found = {name: int(gdb.Value(sp + at).cast(word).dereference()) for name, at in SAVED.items()}
    return {"rsp": sp + FRAME_BYTES, **found}


def backtrace(sp: int) -> None:
    """Print the stack of a context that does not run."""
    gdb.newest_frame().select()
    here = {name: int(gdb.parse_and_eval(f"(unsigned long)${name}")) for name in registers_of(sp)}
    try:
        for name, value in registers_of(sp).items():
            gdb.execute(f"set var ${name} = {value}")
        gdb.execute("backtrace")
    finally:
        for name, value in here.items():
            gdb.execute(f"set var ${name} = {value}")


class Threads(gdb.Command):
    """Print every thread of schedlab-uthreads: who runs where, and the stacks of the others."""

    def __init__(self):
        super().__init__("ut-threads", gdb.COMMAND_STACK)

    def invoke(self, argument: str, from_tty: bool) -> None:
        machine = gdb.parse_and_eval("ut")
        running = {int(machine["cpus"][i]["curr"]): i for i in range(int(machine["nr_cpus"]))}
        for i in range(int(machine["nr_threads_used"])):
            thread = machine["threads"][i]
            if not thread["core"]["is_attached"]:
                continue
            name, pid = thread["core"]["p"]["comm"].string(), int(thread["core"]["p"]["pid"])
            cpu = running.get(int(thread.address))
            if cpu is not None:
                print(f"{name}[{pid}] runs on kernel thread {int(machine['cpus'][cpu]['k']['tid'])}")
                continue
            if not int(thread["sp"]):
                print(f"{name}[{pid}] has not begun")
                continue
            print(f"{name}[{pid}] does not run")
            backtrace(int(thread["sp"]))


Threads()
