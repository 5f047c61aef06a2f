# SPDX-License-Identifier: MIT
"""Commands for gdb on a run of the simulator, which `schedlab debug` starts with them.

    callback [NAME]      on to the policy's next callback, or the next ops.NAME
    reverse-callback     back to the one before
    at TIME              to a time, such as 20ms: before anything happens then
    failure              to where the policy fails
    machine              CPUs, queues and tasks

A run repeats itself exactly, so that the way back is to begin again and stop earlier. A
callback is known by its time and its place among those of that instant: the simulator is
told to stop a nanosecond before (`--dump-at-ns`), and callbacks are counted from there.

Read next: loop.c, SIM_EVENT_DUMP; python/schedlab/check/debug.py, which starts gdb.
"""

import re

import gdb

UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
#: Where a policy is thrown out: by itself; by the core or its watchdog.
FAILS = ("sl_scx_error", "sl_policy_error")
#: How far reverse-callback goes back at first, and how much further each time.
BACK_NS, FURTHER = 1_000_000, 16
#: The simulator's words without a time to stop at; gdb's own gdb.parameter("args") is empty.
ARGUMENTS = gdb.execute("show args", to_string=True).split('"', 1)[1].rsplit('"', 1)[0]


def number(text: str) -> int:
    """Value of an expression of C."""
    return int(gdb.parse_and_eval(text))


def time_ns(text: str) -> int:
    """Read a time."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ns|us|ms|s)\s*", text)
    if not found:
        raise gdb.GdbError(f"{text!r} is no time; say one such as 20ms or 1.5s")
    return round(float(found[1]) * UNITS[found[2]])


def show_time(ns: int) -> str:
    """Write a time."""
    return f"{ns / 1e6:.6f}".rstrip("0").rstrip(".") + " ms"


class Place:
    """Where the run is: the time, and how many callbacks of that instant have begun."""

    at_ns = 0
    nth = 0
    is_inside = False  #: The last of them has gone on to where it fails.
    #: Whether to stop, asked as each callback begins.
    wanted = staticmethod(lambda callback: False)


class Callback(gdb.Breakpoint):
    """At the beginning of a function of the policy's."""

    def __init__(self, operation: str, function: str):
        super().__init__(function, internal=True)
        self.silent = True
        self.operation = operation

    def stop(self) -> bool:
        now_ns = number("sim_now_ns")
        Place.nth = Place.nth + 1 if now_ns == Place.at_ns else 1
        Place.at_ns, Place.is_inside = now_ns, False
        return bool(Place.wanted(self))

    def describe(self) -> str:
        task = gdb.parse_and_eval("sl_core.cpus[sim_cpu_idx].callback_task")
        about = f" about {task['p']['comm'].string()}[{int(task['p']['pid'])}]" if int(task) else ""
        return f"{show_time(Place.at_ns)}, CPU {number('sim_cpu_idx')}: ops.{self.operation}{about}"


callbacks: list[Callback] = []


def watch_policy() -> None:
    """Stop at its callbacks; it has just been loaded anew."""
    for callback in callbacks:
        callback.delete()
    callbacks.clear()
    ops = gdb.parse_and_eval("sl_core.ops")
    for field in ops.type.fields():
        kind = field.type.strip_typedefs()
        if kind.code != gdb.TYPE_CODE_PTR or kind.target().code != gdb.TYPE_CODE_FUNC or not int(ops[field]):
            continue
        symbol = gdb.execute(f"info symbol {int(ops[field])}", to_string=True).split()
        callbacks.append(Callback(field.name, symbol[0]))


def begin(*places: str, option: str = "") -> bool:
    """Begin again, up to one of these functions of the simulator's. Return: whether it was reached."""
    gdb.execute(f"set args {ARGUMENTS}{option}")
    for callback in callbacks:
        callback.enabled = False
    stop_at("run", *places)
    return bool(gdb.selected_inferior().pid)


def stop_at(command: str, *places: str) -> None:
    """Run or continue, up to one of these functions of the simulator's."""
    Place.wanted = staticmethod(lambda callback: False)
    stops = [gdb.Breakpoint(place, internal=True) for place in places]
    for stop in stops:
        stop.silent = True
    gdb.execute(command, to_string=True)
    for stop in stops:
        stop.delete()


def run_to(at_ns: int) -> None:
    """Begin again, and stop before anything happens at a time."""
    if at_ns > 1:
        is_there = begin("sl_dump", option=f" --dump-at-ns {at_ns - 1}")
        if is_there:
            gdb.execute("return", to_string=True)  # without printing what it would
    else:
        is_there = begin("sim_loop")
    if not is_there:
        raise gdb.GdbError(f"the run is over before {show_time(at_ns)}")
    watch_policy()
    Place.at_ns, Place.nth, Place.is_inside = at_ns, 0, False


def go_on(wanted) -> Callback | None:
    """Continue to the first callback that is wanted; None: the run has ended, or something else stopped it."""
    found = []
    Place.wanted = staticmethod(lambda callback: wanted(callback) and not found.append(callback))
    gdb.execute("continue", to_string=True)
    Place.wanted = staticmethod(lambda callback: False)
    if not found and not gdb.selected_inferior().pid:
        print("the run is over")
    return found[0] if found else None


def show(callback: Callback | None) -> None:
    """Say where the run is."""
    if callback:
        print(callback.describe())
    if gdb.selected_inferior().pid:
        gdb.execute("frame")


def need_run() -> None:
    if not gdb.selected_inferior().pid:
        raise gdb.GdbError("the run is over; go back into it with: at TIME")


class At(gdb.Command):
    """at TIME: to a time such as 20ms, before anything happens then."""

    def __init__(self):
        super().__init__("at", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        at_ns = time_ns(argument)
        run_to(at_ns)
        print(f"before anything happens at {show_time(at_ns)}")


class Failure(gdb.Command):
    """failure: to where the policy fails."""

    def __init__(self):
        super().__init__("failure", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if not begin(*FAILS):
            raise gdb.GdbError("nothing fails in this run")
        at_ns = number("sim_now_ns")
        run_to(at_ns)  # from there on callbacks are counted
        stop_at("continue", *FAILS)
        if not gdb.selected_inferior().pid:
            begin(*FAILS)  # before the first instant, as the policy is loaded
        Place.is_inside = True
        print(f"the policy fails at {show_time(at_ns)}, on CPU {number('sim_cpu_idx')}")
        frame = gdb.newest_frame()
        while frame and not (frame.find_sal().symtab and frame.find_sal().symtab.filename.endswith(".bpf.c")):
            frame = frame.older()
        if frame:
            frame.select()
        gdb.execute("frame")


class Next(gdb.Command):
    """callback [NAME]: on to the policy's next callback, or the next ops.NAME, such as enqueue."""

    def __init__(self):
        super().__init__("callback", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        need_run()
        name = argument.strip().removeprefix("ops.")
        names = [callback.operation for callback in callbacks]
        if name and name not in names:
            raise gdb.GdbError(f"this policy has no ops.{name}; it has {', '.join(names)}")
        show(go_on(lambda callback: not name or callback.operation == name))


class Back(gdb.Command):
    """reverse-callback: back to the policy's callback before."""

    def __init__(self):
        super().__init__("reverse-callback", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        at_ns, nth = Place.at_ns, Place.nth
        nth -= not Place.is_inside
        before = (at_ns, nth) if nth > 0 else self.last_before(at_ns)
        if before is None:
            run_to(at_ns)
            print(f"no callback is before {show_time(at_ns)}")
            return
        run_to(before[0])
        show(go_on(lambda callback: (Place.at_ns, Place.nth) == before))

    def last_before(self, at_ns: int) -> tuple[int, int] | None:
        """Time of the last callback before a time, and its place in that instant."""
        back_ns, last = BACK_NS, None

        def is_there(callback: Callback) -> bool:
            nonlocal last
            if Place.at_ns < at_ns:
                last = Place.at_ns, Place.nth
            return Place.at_ns >= at_ns

        while last is None:
            from_ns = max(at_ns - back_ns, 0)
            run_to(from_ns)
            go_on(is_there)
            back_ns *= FURTHER
            if not from_ns:
                break
        return last


class State(gdb.Command):
    """machine: CPUs, queues and tasks, as they are now."""

    def __init__(self):
        super().__init__("machine", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        need_run()
        gdb.execute("call (void)sl_dump()")


for command in (At, Failure, Next, Back, State):
    command()
for setting in ("confirm off", "pagination off", "print thread-events off", "startup-with-shell off"):
    gdb.execute(f"set {setting}")
