# SPDX-License-Identifier: MIT
"""For gdb: go through switches instruction by instruction, and unwind at each.

Prints one line per instruction: the functions on the stack, innermost first.
"""

import gdb

NR_SWITCHES = 4
#: Where a thread's function returns to when it ends: behind a `mov` and a `call`.
AFTER_CALL = 6


def stack() -> list[str]:
    frame, names = gdb.newest_frame(), []
    while frame is not None:
        names.append(str(frame.name()))
        frame = frame.older()
    return names


gdb.execute("set pagination off")
gdb.execute("set breakpoint pending on")
gdb.execute("break stop_here")
gdb.execute("run")
gdb.execute("break *ut_switch")
gdb.execute(f"break *((char *)ut_context_entry + {AFTER_CALL})")
for _ in range(NR_SWITCHES):
    gdb.execute("continue")
    while gdb.newest_frame().name() in ("ut_switch", "ut_context_entry"):
        print("STACK", *stack())
        gdb.execute("stepi", to_string=True)
    print("STACK", *stack())
