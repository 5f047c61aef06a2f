# SPDX-License-Identifier: MIT
"""Calls of helpers whose answer a policy does not look at, and what ends it where one of them fails.

        source -> compiler: [[nodiscard]] -> places -> with_answers(): a header that comes first
                                                         and puts a test around each such helper

A call that is an expression by itself is not looked at; a cast to void says that this is meant so, as
in all C. What is kept in a variable, or handed on by a function of the policy's own, counts as looked at.

Invariant: a call that succeeds is as without it.
Read next: build.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

#: What the compiler is given where answers are held.
ANSWERS_FLAG = "-DSL_ANSWERS"
#: Begins the message of an error that was not looked at.
IGNORED = "scx_bpf_error: the error of "
#: What is called in native code: how a policy calls it, what it gives, its parameters. Left out is what says by an
#: error that there is nothing, and how a timer is set up: where that fails, `bpf_timer_start()` does.
HELPERS = {
    "sl_map_update": ("bpf_map_update_elem", "long", "struct sl_map *, const void *, const void *, u64"),
    "sl_map_push": ("bpf_map_push_elem", "long", "struct sl_map *, const void *, u64"),
    "bpf_timer_start": ("bpf_timer_start", "long", "struct bpf_timer *, u64, u64"),
    "scx_bpf_create_dsq": ("scx_bpf_create_dsq", "s32", "u64, s32"),
}
#: That something is there already, or is not, is an answer.
_ERRORS = ("E2BIG", "ENOMEM", "EBUSY", "EINVAL", "EDEADLK")
_IGNORED = re.compile(r"^(.+?):(\d+):\d+: warning: ignoring return value of", re.MULTILINE)
_CALLED = re.compile(rf"\b(?:{'|'.join(called for called, _, _ in HELPERS.values())})\b")
#: Lines that a call may go on for.
_LINES_MAX = 40
_BEFORE = "#include <scx/common.bpf.h>\n"
_TEST = """
static const char *sl_error_name(long answer)
{
%(names)s	return "an error";
}

static __attribute__((no_sanitize("thread"))) bool sl_is_ignored(const char *file, int line)
{
	for (u32 i = 0; i < sizeof(sl_ignored) / sizeof(sl_ignored[0]); i++) {
		const char *one = sl_ignored[i].file, *other = file;

		while (*one && *one == *other)
			one++, other++;
		if (*one == *other && line >= sl_ignored[i].first && line <= sl_ignored[i].last)
			return true;
	}
	return false;
}

static __attribute__((unused)) long sl_answer(long answer, const char *called, const char *file, int line)
{
	const char *name = file;

	if (answer >= 0 || answer == -EEXIST || answer == -ENOENT || !sl_is_ignored(file, line))
		return answer;
	for (; *file; file++)
		if (*file == '/')
			name = file + 1;
	scx_bpf_error("the error of %%s() at %%s:%%d is not looked at: %%s (%%ld)", called, name, line,
		      sl_error_name(answer), answer);
	return answer;
}
"""


@dataclass(frozen=True)
class Ignored:
    """A call, from its first line to its last, in a file as the compiler names it."""

    file: str
    first: int
    last: int


def declarations() -> str:
    """A header that has the compiler warn of each answer that is not looked at."""
    return _BEFORE + "".join(
        f"[[nodiscard]] {result} {name}({params});\n" for name, (_, result, params) in HELPERS.items()
    )


def ignored_in(messages: str, texts: dict[str, str]) -> list[Ignored]:
    """The calls that a compiler's messages name; `texts` has the files, as it names them."""
    places = {(file, int(line)) for file, line in _IGNORED.findall(messages)}
    return [
        Ignored(file, line, _last_line(texts.get(file, "").splitlines(), line))
        for file, line in sorted(places)
    ]


def _last_line(lines: list[str], line: int) -> int:
    """Where the call that begins on a line ends: gcc takes the one for the line of a macro, and clang the other."""
    depth = 0
    for number, text in enumerate(lines[line - 1 : line - 1 + _LINES_MAX], line):
        called = _CALLED.search(text)
        for letter in text[called.end() :] if called and number == line else text:
            depth += (letter == "(") - (letter == ")")
            if letter == ")" and depth <= 0:
                return number
    return line


def with_answers(ignored: Iterable[Ignored]) -> str:
    """A header that puts a test around each helper; it counts at those places."""
    names = "".join(f'\tif (answer == -{name})\n\t\treturn "{name}";\n' for name in _ERRORS)
    rows = "".join(f'\t{{ "{each.file}", {each.first}, {each.last} }},\n' for each in ignored)
    macros = "".join(
        f'#define {name}(...) sl_answer({name}(__VA_ARGS__), "{called}", __FILE__, __LINE__)\n'
        for name, (called, _, _) in HELPERS.items()
    )
    return (
        f"{_BEFORE}\nstatic const struct {{\n\tconst char *file;\n\tint first, last;\n}} sl_ignored[] = {{\n{rows}}};\n"
        f"{_TEST % {'names': names}}{macros}"
    )
