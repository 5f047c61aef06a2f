# SPDX-License-Identifier: MIT
"""`@invariant EXPR` in a policy's header: a C expression that holds after each callback, in check mode.

`@invariant EXPR when quiet` holds whenever a task becomes runnable and none was.

`@virtual-time yes` has each virtual time tested, too: none leaps.

        header -> invariants_of() -> with_invariants(): the file, then a function that tests each
                                     expression, then callbacks around the policy's own that call it

An expression is compiled at the end of the policy's file, so that it may name all that is there,
and with the line of the header, so that the compiler's message says where it stands.

Invariant: without check mode nothing of it is compiled.
Read next: build.py.
"""

from __future__ import annotations

import json
import re

from ..errors import PolicyError
from .find import Policy, header_declarations, source_files

#: What the compiler is given in check mode.
CHECK_FLAG = "-DSL_CHECK"
#: Begins the message of a broken one.
BROKEN = "scx_bpf_error: invariant of line "
#: Begins the message of a virtual time that leaps.
LEAPS = "scx_bpf_error: virtual time of "
_COMPARISON = re.compile(r"([^<>=!&|?]+)(==|!=|<=|>=|<|>)([^<>=!&|?]+)")
#: Callbacks after which expressions are held, with parameters and arguments.
_CALLBACKS = {
    "enqueue": ("struct task_struct *p, u64 flags", "p, flags"),
    "dequeue": ("struct task_struct *p, u64 flags", "p, flags"),
    "dispatch": ("s32 cpu, struct task_struct *p", "cpu, p"),
    "tick": ("struct task_struct *p", "p"),
    "runnable": ("struct task_struct *p, u64 flags", "p, flags"),
    "running": ("struct task_struct *p", "p"),
    "stopping": ("struct task_struct *p, bool runnable", "p, runnable"),
    "quiescent": ("struct task_struct *p, u64 flags", "p, flags"),
    "select_cpu": ("struct task_struct *p, s32 prev_cpu, u64 flags", "p, prev_cpu, flags"),
}
_BEFORE = """#include <scx/common.bpf.h>
#undef SCX_OPS_DEFINE
#define SCX_OPS_DEFINE(name, ...) struct sched_ext_ops name = { __VA_ARGS__ }; \\
	static struct sched_ext_ops *const sl_checked_ops = &name; SL_POLICY_OF(name)
"""


#: In place of what queues a task by its virtual time, where the header says `@virtual-time yes`. Between two tasks
#: that are queued one after the other lies a minute's work of the lightest at most: 2^52, in stride's 1/65536 ns.
_VIRTUAL_TIME = """static u64 sl_vtime;
static bool sl_has_vtime;

__attribute__((no_sanitize("thread"))) static u64 sl_checked_vtime(struct task_struct *p, u64 vtime)
{
	u64 last = sl_vtime;

	if (sl_has_vtime && (s64)(vtime - last) / (1LL << 56))
		scx_bpf_error("virtual time of %s[%d] is %llu, and of the task that was queued before it %llu", p->comm, p->pid, vtime, last);
	sl_has_vtime = true;
	sl_vtime = vtime;
	return vtime;
}
#define scx_bpf_dsq_insert_vtime(p, dsq_id, slice, vtime, enq_flags) \\
	scx_bpf_dsq_insert_vtime(p, dsq_id, slice, sl_checked_vtime(p, vtime), enq_flags)
"""


_DEFINED = re.compile(r"^SCX_OPS_DEFINE\(", re.MULTILINE)
#: Ends an expression that need not hold while a task is runnable.
_QUIET = re.compile(r"\s+when\s+quiet$")
#: Before a task becomes runnable where none is, the policy's other callbacks have had their time.
_QUIET_CALLBACKS = """static s32 sl_nr_runnable;

static void sl_quiet_runnable(struct task_struct *p, u64 flags)
{
	if (!__sync_fetch_and_add(&sl_nr_runnable, 1)) sl_test_quiet("runnable", p);
	if (sl_own_runnable) sl_checked_runnable(p, flags);
}
static void sl_quiet_quiescent(struct task_struct *p, u64 flags)
{
	if (sl_own_quiescent) sl_checked_quiescent(p, flags);
	__sync_fetch_and_sub(&sl_nr_runnable, 1);
}"""


def is_defined_by_macro(policy: Policy) -> bool:
    """Whether tests can be compiled around a policy's callbacks: `SCX_OPS_DEFINE` defines them."""
    files = source_files(policy.path).values()
    return any(_DEFINED.search(file.read_text(encoding="utf-8", errors="replace")) for file in files)


def has_tests(policy: Policy) -> bool:
    """Whether a policy is another one in check mode."""
    return policy.virtual_time or bool(invariants_of(policy))


def invariants_of(policy: Policy) -> list[tuple[int, str]]:
    """Lines and expressions of a policy's header.

    In the order of the file; PolicyError: there is no expression, or its parentheses do not match.
    """
    found = []
    for line, words in header_declarations(policy.path):
        if words.split()[0] != "@invariant":
            continue
        expression = words.removeprefix("@invariant").strip()
        if not expression or not _is_balanced(expression) or ";" in expression:
            raise PolicyError(
                f"{policy.path}:{line}: '{words}' should read '@invariant EXPR', one C expression "
                "that is true after each callback, such as '@invariant n_queued >= 0'; an empty line ends it"
            )
        found.append((line, expression))
    return found


def _is_balanced(expression: str) -> bool:
    """Whether each parenthesis is closed, and none that is not open."""
    depth = 0
    for letter in expression:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0


def with_invariants(policy: Policy, found: list[tuple[int, str]], lines: list[str]) -> list[str]:
    """Surround the lines that a policy is compiled from with what tests its expressions."""
    tests = [test for line, text in found for test in _test(policy, line, text) if not _QUIET.search(text)]
    quiet = [test for line, text in found for test in _test(policy, line, text) if _QUIET.search(text)]
    wrapped = []
    for name, (params, args) in _CALLBACKS.items():
        result, keep, give = (
            ("s32", "s32 cpu = ", "\n\treturn cpu;") if name == "select_cpu" else ("void", "", "")
        )
        task = "p" if "*p" in params else "NULL"
        wrapped += [
            f"static __typeof__(((struct sched_ext_ops *)0)->{name}) sl_own_{name};",
            f"static {result} sl_checked_{name}({params})",
            f'{{\n\t{keep}sl_own_{name}({args});\n\tsl_test("{name}", {task});{give}\n}}',
        ]
    begin = [
        f"\tif (sl_checked_ops->{name}) {{ sl_own_{name} = sl_checked_ops->{name};"
        f" sl_checked_ops->{name} = sl_checked_{name}; }}"
        for name in _CALLBACKS
    ]
    if quiet:
        wrapped += ["static void sl_test_quiet(const char *callback, const struct task_struct *p)", "{", *quiet, "}",
                    _QUIET_CALLBACKS]  # fmt: skip
        begin += [f"\tsl_checked_ops->{name} = sl_quiet_{name};" for name in ("runnable", "quiescent")]
    return [
        _BEFORE, *([_VIRTUAL_TIME] if policy.virtual_time else []), *lines, "static void sl_test(const char *callback, const struct task_struct *p)", "{", *tests, "}",
        *wrapped, "static __attribute__((constructor)) void sl_check_begin(void)", "{", *begin, "}",
    ]  # fmt: skip


#: Callbacks by number, for Linux.
TESTED = (*_CALLBACKS,)
LINUX_TEST = "sl_invariant"


def for_linux(policy: Policy) -> tuple[str, re.Pattern[str]]:
    """C that tests a policy's expressions on Linux at the end of callback number `callback`, and how a message names it.

    Empty: none of them is of each callback. When all is quiet is not known there.
    """
    found = [(line, text) for line, text in invariants_of(policy) if not _QUIET.search(text)]
    tests = [test for line, text in found for test in _test(policy, line, text, is_linux=True)]
    head = f"static __attribute__((noinline, used)) void {LINUX_TEST}(u32 callback)"
    return "\n".join([head, "{", *tests, "}", ""]) if found else "", re.compile(r"callback (\d+)(?=: )")


def _test(policy: Policy, line: int, expression: str, *, is_linux: bool = False) -> list[str]:
    """C that ends the policy where an expression is false; with both values where it is one comparison."""
    shown, values = "", ""
    is_quiet, expression = bool(_QUIET.search(expression)), _QUIET.sub("", expression)
    match = _COMPARISON.fullmatch(expression)
    if match and _is_balanced(match[1]) and _is_balanced(match[3]):
        shown = f" (%lld {match[2]} %lld)"
        values = f", (long long)({match[1].strip()}), (long long)({match[3].strip()})"
    text = expression.replace("%", "%%")
    when = "when no task is runnable, before ops.%s()" if is_quiet else "after ops.%s()"
    message = json.dumps(f"invariant of line {line} is false {when} for %s[%d]: {text}{shown}")
    who = 'callback, p ? p->comm : "-", p ? p->pid : 0'
    if is_linux:
        message = json.dumps(f"invariant of line {line} is false after callback %u: {text}{shown}")
        who = "callback"
    # As one line, so that what the compiler says of it has the header's.
    return [
        f'#line {line} "{policy.path.absolute()}"',
        f"\tif (!({expression})) scx_bpf_error({message}, {who}{values});",
        '#line 1 "main.c"',  # what follows is no line of the policy
    ]
