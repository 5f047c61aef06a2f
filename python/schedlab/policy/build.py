# SPDX-License-Identifier: MIT
"""Compile a policy to a shared object, once per content, and read its symbols.

The cache is keyed by all that can change the result: source, headers, what is
written around the source, compiler's version and flags. A failed compilation is not cached; its messages
name the user's own file and line. A wheel brings its policies compiled
(tools/build_backend.py), keyed by source, headers and flags: they need no compiler.

Read next: hosts/sim.py, which loads the result.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import paths
from ..errors import PolicyError, UnavailableError, did_you_mean
from ..files import made_whole
from ..tools import ask, version_of
from ..waiting import announced
from .answers import ANSWERS_FLAG, declarations, ignored_in, with_answers
from .bpf import Toolchain, check_for_linux, compile_object, find_bpf_compiler, is_object
from .check import check_callbacks, check_object
from .elf import ElfFile
from .find import Knob, Policy, policy_hash, source_files
from .invariants import CHECK_FLAG, has_tests, invariants_of, with_invariants
from .launch_file import (
    CALL,
    CODE_SUFFIX,
    FLAGS_NAME,
    FLAGS_ON_NODES,
    OPTIONAL,
    is_thread_only,
    launch_code,
    launch_file,
    names_asked_for,
    read_launch_file,
    with_map_sizes,
)
from .published import compiler_flags, flags_of, published, scheduler_version

if TYPE_CHECKING:
    from .loader import Loader

#: What every host that runs native policies compiles them with.
FLAGS = (
    "-std=gnu11",
    "-O2",
    "-g",
    "-fPIC",
    "-shared",
    "-fno-semantic-interposition",
    "-Wall",
    # A call to nothing would only be noticed when the policy is loaded.
    "-Werror=implicit-function-declaration",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    "-Werror=return-type",
    # The verifier of Linux lets no index be outside of its array.
    "-fsanitize=bounds",
    "-fsanitize-undefined-trap-on-error",
    # Linux gives a policy no floating point, as it gives itself none.
    *(("-mgeneral-regs-only",) if platform.machine() in ("x86_64", "aarch64") else ()),
    # Atomic operations are instructions, not calls that ask the C library for the processor's kind.
    *(("-mno-outline-atomics",) if platform.machine() == "aarch64" else ()),
)
#: clang does so by itself: each index has its own trap, with its own line.
FLAGS_GCC = ("-fno-crossjumping",)
COMPILE_SECONDS_MAX = 60
#: Memory of the compiler, and size of what it writes: a source may include
#: /dev/zero, or be one array of a terabyte.
COMPILE_KIB_MAX = 2 << 20
#: Limits that the compiler's own children inherit; one that cannot be set is left.
_LIMITED = f'ulimit -t {COMPILE_SECONDS_MAX}; ulimit -v "$1"; ulimit -f "$1"; shift; exec "$@"'
MESSAGE_LINES_MAX = 40


@dataclass(frozen=True)
class BuiltPolicy:
    """A compiled policy with the values of its knobs."""

    policy: Policy  #: Its source.
    shared_object: Path  #: The compiled file, in the cache; a policy that is a BPF object itself.
    values: dict[str, Any]  #: Every knob's value in its unit, defaults included.
    policy_hash: str  #: SHA-256 over source, headers and values.
    #: What its launch file sets (launch_file.py), where it has one.
    launch: dict[str, int | str] = field(default_factory=dict)
    #: For Linux: the natively compiled file whose launch() says what the kernel's gets (hosts/user_half.py).
    user_half: Path | None = None
    #: A program that loads its scheduler itself (loader.py), in place of all that.
    loader: Loader | None = None


#: A policy's operations without `SCX_OPS_DEFINE()`.
STRUCT_OPS = re.compile(
    r'^[ \t]*SEC\(\s*"\.struct_ops(?:\.link)?"\s*\)\s*(?:static\s+)?struct\s+sched_ext_ops\s+(\w+)\s*=',
    re.MULTILINE,
)
#: What a policy can be compiled to: a shared object, a module of WebAssembly, or an object of BPF.
ENGINES = ("native", "wasm", "bpf")


def build_policy(
    policy: Policy,
    values: Mapping[str, int] | None = None,
    *,
    engine: str = "native",
    toolchain: Callable[[], Toolchain] | None = None,
) -> BuiltPolicy:
    """Compile a policy, or find it in the cache, and settle its knobs."""
    user_half = None
    if engine == "wasm":
        from .wasm_build import compile_wasm
        from .wasm_file import read_module

        shared_object = compile_wasm(policy)
        symbols = read_module(shared_object).objects()
    elif engine == "bpf":
        shared_object = _object_for_linux(policy, toolchain)
        user_half = user_half_of(policy)
        symbols = ElfFile(shared_object).objects()
    else:
        shared_object = compile_policy(policy)
        # One that is published has been loaded by Linux; with other headers than these.
        if not published(policy.path).is_published:
            check_for_linux(policy.path, policy.content_hash)
        symbols = ElfFile(shared_object).objects()
    if engine != "bpf" and "sl_policy" not in symbols:
        raise PolicyError(
            f"{policy.path}: defines no policy; end the file with "
            f"SCX_OPS_DEFINE({policy.name}_ops, .enqueue = (void *){policy.name}_enqueue, ...)"
        )
    launch = _launch_values(policy, symbols)
    settled: dict[str, int] = {}
    for name, knob in policy.knobs.items():
        default = _default_value(policy, knob, symbols)
        if not knob.minimum <= default <= knob.maximum:
            raise PolicyError(
                f"{policy.path}:{knob.line}: the default of {name} is {default}, outside its "
                f"own range of {knob.minimum} to {knob.maximum} {knob.unit}"
            )
        if knob.names and default not in knob.names.values():
            raise PolicyError(
                f"{policy.path}:{knob.line}: the default of {name} is {default}, which has no name "
                f"(one of: {', '.join(knob.names)})"
            )
        _check_range(policy, knob, len(symbols[name]))
        settled[name] = (values or {}).get(name, default)
    hashed = policy_hash(policy, launch | settled)
    return BuiltPolicy(policy, shared_object, settled, hashed, launch, user_half)


def _object_for_linux(policy: Policy, toolchain: Callable[[], Toolchain] | None) -> Path:
    """An object that Linux alone has to take: nothing else is said of the policy but what clang says."""
    if not is_object(policy.path) and came_compiled(policy) is None:
        check_callbacks(policy.path, policy.path.read_text("utf-8", errors="replace"))
    return compile_object(policy.path, policy.content_hash, toolchain=toolchain)


def user_half_of(policy: Policy) -> Path | None:
    """What runs here for a policy that Linux gets; it is compiled with the policy's source."""
    code = launch_code(policy.name, policy.path)
    if code and is_thread_only(code):
        return None
    if code and is_object(policy.path):
        raise PolicyError(f"{policy.path}: {code} is compiled with a policy's source: give that")
    return compile_policy(policy) if code else None


def _launch_values(policy: Policy, symbols: Mapping[str, bytes]) -> dict[str, int | str]:
    """Constants of the launch file, held against the variables of the compiled one."""
    path = launch_file(policy.name, policy.path)
    if path is None:
        return {}
    data = [name for name, value in symbols.items() if len(value) in (1, 2, 4, 8)]
    found: dict[str, int | str] = {}
    for said, value in read_launch_file(path).items():
        name = said.removesuffix(OPTIONAL)
        if name in data or name in (FLAGS_NAME, FLAGS_ON_NODES) or name.startswith(CALL):
            found[name] = value
        elif name == said:
            raise PolicyError(
                f"{path}: rodata.{name}: {policy.path} has no number of that name{did_you_mean(name, data)}"
            )
    return found


def _default_value(policy: Policy, knob: Knob, symbols: Mapping[str, bytes]) -> int:
    """Value that the compiled file gives a knob."""
    raw = symbols.get(knob.name)
    if raw is None or len(raw) not in (1, 2, 4, 8):
        data = [name for name, value in symbols.items() if len(value) in (1, 2, 4, 8)]
        raise PolicyError(
            f"{policy.path}:{knob.line}: @knob {knob.name}: the file has no number of that name "
            f"that can be set{did_you_mean(knob.name, data)}; declare it as "
            f"'const volatile u64 {knob.name} = ...;'"
        )
    return int.from_bytes(raw, "little", signed=knob.minimum < 0)


def _check_range(policy: Policy, knob: Knob, n_bytes: int) -> None:
    """Refuse a range that the variable cannot hold."""
    bits = 8 * n_bytes
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if knob.minimum < 0 else (0, (1 << bits) - 1)
    if knob.minimum < low or knob.maximum > high:
        raise PolicyError(
            f"{policy.path}:{knob.line}: @knob {knob.name}: its range leaves the variable, which "
            f"has {n_bytes} bytes and holds {low} to {high}"
        )


def find_compiler() -> tuple[str, str]:
    """Command and version of the C compiler."""
    return _find_compiler(os.environ.get("CC"))


@lru_cache
def _find_compiler(given: str | None) -> tuple[str, str]:
    for command in [given] if given else ["cc", "gcc", "clang", "clang-19"]:
        found = shutil.which(command)
        if found is not None and (version := version_of([found])) is not None:
            return found, version
    tried = f"CC={given} cannot be started" if given else "none of cc, gcc, clang is there"
    raise UnavailableError(
        f"no C compiler: {tried}; only the policies of a wheel come compiled, your own are C and are "
        "compiled here: sudo apt-get install gcc libc6-dev"
    )


def compiled_name(policy: Policy) -> str:
    """Name of a policy's compiled file in a wheel."""
    key = "\0".join([policy.content_hash, *FLAGS])
    return f"{policy.name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.so"


def came_compiled(policy: Policy) -> Path | None:
    """Compiled file that the wheel brought; none where `$CC` asks for a compiler."""
    found = paths.compiled_folder() / compiled_name(policy)
    return found if not os.environ.get("CC") and found.is_file() else None


def need_compiler(policies: Iterable[Policy], engine: str = "native") -> None:
    """Raise `UnavailableError` where one of the policies is to be compiled and no compiler is here."""
    if engine == "wasm":
        from .wasm_build import find_tools

        find_tools()
    elif engine == "bpf":
        if not all(is_object(policy.path) for policy in policies):
            find_bpf_compiler()
    elif not all(map(came_compiled, policies)):
        find_compiler()


def compile_policy(policy: Policy, *, more_flags: Sequence[str] = ()) -> Path:
    """Compile a policy's file, unless it came compiled or its result is cached."""
    if not more_flags and (brought := came_compiled(policy)):
        return brought
    if is_object(policy.path):
        raise PolicyError(
            f"{policy.path}: an object of BPF is Linux's: --host guest runs it, and schedlab load loads it; "
            "for the other hosts give its source"
        )
    compiler, version = find_compiler()
    include = paths.include_folder()
    flags = (*FLAGS, *(() if "clang" in version else FLAGS_GCC), *more_flags)
    of_published = flags_of(published(policy.path))
    main = _main_text(policy, is_checked=CHECK_FLAG in more_flags)
    # The same file elsewhere is the same policy.
    written = (main or "").replace(str(policy.path.absolute().parent), "")
    held = declarations() + with_answers([]) if ANSWERS_FLAG in flags else ""
    key = "\0".join([policy.content_hash, compiler, version, *flags, *of_published, written, held])
    digest = hashlib.sha256(key.encode()).hexdigest()[:32]
    folder = paths.cache_folder("policies")
    result = folder / f"{policy.name}-{digest}.so"
    if result.is_file():
        return result
    with (
        announced(f"compiling {policy.path.name}, about a second the first time; it is kept"),
        made_whole(result) as made,
    ):
        command = [compiler, *flags, "-I", str(include), *_sources(policy, main, made.parent)]
        if held:
            command += _with_answers(policy, command, made.parent)
        answer = _compile(policy, [*command, "-o", str(made)])
        if answer.returncode != 0:
            said = f"{compiler_messages(answer)}{_hint(answer.stderr)}"
            raise PolicyError(f"{policy.path} does not compile:\n{said}{_of_launch(policy, answer.stderr)}")
        text = policy.path.read_text("utf-8", errors="replace")
        check_callbacks(policy.path, text)
        # With a sanitizer it calls more than Linux offers; without, it has been held against that.
        if not any(flag.startswith("-fsanitize") for flag in more_flags):
            check_object(policy.path, text, ElfFile(made))
    return result


def _compile(policy: Policy, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Start the compiler, within limits of time and memory."""
    return ask(
        ["/bin/sh", "-c", _LIMITED, "sh", str(COMPILE_KIB_MAX), *command],
        seconds_max=COMPILE_SECONDS_MAX,
        late=PolicyError(f"{policy.path}: the compiler had not ended after {COMPILE_SECONDS_MAX} s"),
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    )


def _with_answers(policy: Policy, command: Sequence[str], scratch: Path) -> list[str]:
    """Have the compiler look for answers that are not looked at; what it is to be given where there are some."""
    header = scratch / "answers.h"
    header.write_text(declarations())
    options = ["-include", str(header)]
    is_clang = "clang" in find_compiler()[1]
    look = ["-fsyntax-only", "-Wunused-result", *(() if is_clang else ("-ftrack-macro-expansion=0",))]
    said = _compile(policy, [*(word for word in command if word != "-w"), *options, *look]).stderr
    names = {match[1] for match in re.finditer(r"^(.+?):\d+:\d+: warning", said, re.MULTILINE)}
    texts = {name: Path(name).read_text("utf-8", errors="replace") for name in names if Path(name).is_file()}
    header.write_text(with_answers(ignored_in(said, texts)))
    return options


def _with_sizes(policy: Policy) -> str | None:
    """The main file with the sizes of maps that its launch file has; None: it has none."""
    text = policy.path.read_text("utf-8", errors="replace")
    sized = with_map_sizes(launch_file(policy.name, policy.path), text)
    return sized if sized != text else None


def _sources(policy: Policy, main: str | None, scratch: Path) -> list[str]:
    """Files to compile, with the options that they need; `main` is what is written in place of the policy's."""
    found = published(policy.path)
    links = scratch / "links"
    links.mkdir()
    named = () if found.sources else struct_ops_flags(policy.path)
    flags = [*compiler_flags(found, links), *named]
    if main is None:
        return [*flags, *map(str, (policy.path, *found.sources))]
    written = scratch / "main.c"
    written.write_text(main)
    return [*flags, "-iquote", str(policy.path.absolute().parent), *map(str, (written, *found.sources))]


def _main_text(policy: Policy, *, is_checked: bool) -> str | None:
    """What is compiled in place of the policy's file; None: the file itself."""
    path = policy.path.absolute()
    sized = _with_sizes(policy)
    code = launch_code(policy.name, policy.path)
    is_tested = is_checked and has_tests(policy)
    if not code and not sized and not is_tested:
        return None
    lines = [f'#line 1 "{path}"', sized] if sized else [f'#include "{path}"']
    if code:
        files = source_files(policy.path, has_launch=False).values()
        lines += [
            *names_asked_for(code, files),
            f'#include "{code}"',
            *([] if is_thread_only(code) else ["int sl_launch(void) { return launch(); }"]),
        ]
    if is_tested:
        lines = with_invariants(policy, invariants_of(policy), lines)
    return "".join(f"{line}\n" for line in lines)


def struct_ops_flags(source: Path) -> tuple[str, ...]:
    """What the compiler has to be told about a file that defines its operations as Linux's documentation does."""
    found = STRUCT_OPS.search(source.read_text("utf-8", errors="replace"))
    return (f"-DSL_STRUCT_OPS={found[1]}",) if found else ()


def _of_launch(policy: Policy, messages: str) -> str:
    """What it means that the part of another version's user half does not compile."""
    code = launch_code(policy.name, policy.path)
    if not code or code.parent == policy.path.parent or f"{code}:" not in messages:
        return ""
    version = ".".join(map(str, scheduler_version(policy.path))) or "unknown"
    return (
        f"\n{code.name} is for another version of {policy.name} than this one ({version}): "
        f"write one for it, {policy.path.parent / (policy.name + CODE_SUFFIX)}"
    )


def _hint(messages: str) -> str:
    """What a compiler without floating point means by its words."""
    if "SSE" not in messages and "general-regs-only" not in messages:
        return ""
    return "\nLinux gives a policy no floating point: use integers, such as thousandths"


def compiler_messages(answer: subprocess.CompletedProcess[str]) -> str:
    """The compiler's own words, cut to what a person reads."""
    lines = (answer.stderr or answer.stdout).rstrip().splitlines()
    if not lines:
        return f"(the compiler said nothing and ended with {answer.returncode})"
    if len(lines) > MESSAGE_LINES_MAX:
        left = len(lines) - MESSAGE_LINES_MAX
        lines = [*lines[:MESSAGE_LINES_MAX], f"({left} more lines)"]
    return "\n".join(lines)
