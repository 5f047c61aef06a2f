# SPDX-License-Identifier: MIT
"""Build the simulator and policies as WebAssembly modules, once per content.

        simulator   hosts/sim with wasm.c, core/, player/ -> schedlab-sim-HASH.wasm; a wheel
                    brings it
        policy      NAME.bpf.c + hosts/sim/policy_wasm.c  -> NAME-HASH.wasm, metered

Two modules with one memory: the simulator's begins at POLICY_BYTES, a policy's is below
it, with its own stack at the very bottom, so that one that recurses without end leaves
the memory. The two also share a table of functions, a policy's from TABLE_BASE on.

The compiler is clang with `wasm-ld`, or `ziglang` of PyPI, which is both, brings a C
library, and is there for every common system.

Read next: wasm_file.py, wasm_meter.py; hosts/wasm_run.py, which runs the two.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .. import paths
from ..errors import PolicyError, SchedlabError, UnavailableError
from ..files import made_whole
from ..tools import ask, version_of
from ..waiting import announced
from . import jail
from .build import compiler_messages, struct_ops_flags
from .check import Prototype, callback_names, check_callbacks, check_object, operations
from .find import Policy, source_files
from .wasm_file import CUSTOM, SIZES, Module, name, object_symbols, parse_module, unsigned
from .wasm_meter import I32, I64, Signature, metered

#: The simulator's parts of other folders; of hosts/sim it is all but what is for processes.
SHARED_SOURCES = (
    "core/build.c", "player/objects.c", "player/player.c", "player/program.c",
    "hosts/common/groups.c", "hosts/common/json_text.c", "hosts/common/options.c", "hosts/common/policy_file.c",
)  # fmt: skip
FOR_PROCESSES = {"image.c", "main.c", "posix.c", "serve.c", "policy_wasm.c"}
INCLUDES = ("include", "hosts/common", "hosts/sim", "player")
#: Where the simulator's memory begins, and what a policy's data and stack have.
POLICY_BYTES = 64 << 20
STACK_BYTES = 256 << 10
#: The simulator's stack, above its data.
SIM_STACK_BYTES = 1 << 20
TABLE_BASE = 4096
SIM_FLAGS = (
    "-std=gnu11",
    "-O3",
    "-mbulk-memory",
    # wasm.c has its own, since those of the C library bring its streams.
    *(f"-D{name}=sim_{name}" for name in ("abort", "snprintf", "vsnprintf")),
)
POLICY_FLAGS = (
    "-std=gnu11",
    "-O2",
    "-ffreestanding",
    "-fvisibility=default",
    "-mno-bulk-memory",
    # Assembly could name files, and instructions that are not counted.
    "-fno-gnu-inline-asm",
    "-fno-crash-diagnostics",
    "-Wall",
    "-Werror=implicit-function-declaration",
    "-Werror=int-conversion",
    "-Werror=incompatible-pointer-types",
    "-Werror=return-type",
    # As natively. Address 0 is memory here, so NULL is looked for, too.
    "-fsanitize=bounds,null",
    "-fsanitize-trap=bounds",
    "-fno-sanitize-recover=null",
    "-fsanitize-minimal-runtime",
)
#: What is linked to each policy, and how; then how a policy is linked.
SUPPORT = "hosts/sim/policy_wasm.c"
SUPPORT_FLAGS = ("-fno-builtin", "-fno-sanitize=all")
LINK_FLAGS = (
    "--no-entry", "--import-memory", "--import-table", f"--table-base={TABLE_BASE}", "--stack-first",
    f"-zstack-size={STACK_BYTES}", "--export-dynamic", "--allow-undefined",
)  # fmt: skip
#: For clang: the whole simulator at once, as natively, is a seventh faster.
LTO_FLAGS = ("-flto", "-mllvm", "-inline-threshold=600")
COMPILE_SECONDS_MAX = 60
#: Functions that bpf_loop() and a timer call.
_LOOP = re.compile(r"\bbpf_loop\s*\((?:[^,()]|\([^()]*\))*,\s*&?(\w+)\s*,")
_TIMER = re.compile(r"\bbpf_timer_set_callback\s*\((?:[^,()]|\([^()]*\))*,\s*&?(\w+)\s*\)")
_EXPORTED = re.compile(r"^\t([\w*]+);$", re.MULTILINE)


def policy_flags(clang_major: int) -> tuple[str, ...]:
    """How a version of clang compiles a policy: what fills memory is an option of its own since version 20."""
    return (*POLICY_FLAGS, *(("-mno-bulk-memory-opt",) if clang_major >= 20 else ()))


@dataclass(frozen=True)
class Tools:
    """A compiler and a linker for WebAssembly."""

    compiler: tuple[str, ...]  #: Command that compiles, without a target.
    linker: tuple[str, ...]  #: Command that links.
    version: str  #: What the compiler says of itself.

    @property
    def is_zig(self) -> bool:
        """Whether it is PyPI's ziglang."""
        return self.compiler[-1] == "cc"

    @property
    def policy_flags(self) -> tuple[str, ...]:
        """How it compiles a policy."""
        major = re.search(r"clang version (\d+)", self.version)
        return policy_flags(int(major[1]) if major else 0)


@lru_cache(maxsize=1)
def environment() -> dict[str, str]:
    """Environment of compilers: zig keeps its own cache, which is to be in ours."""
    zig = str(paths.cache_folder("zig"))
    return os.environ | {"LC_ALL": "C.UTF-8", "ZIG_GLOBAL_CACHE_DIR": zig, "ZIG_LOCAL_CACHE_DIR": zig}


@lru_cache(maxsize=1)
def find_tools() -> Tools:
    """Compiler and linker for WebAssembly."""
    for suffix in ("-19", "", "-20", "-21"):
        compiler, linker = shutil.which(f"clang{suffix}"), shutil.which(f"wasm-ld{suffix}")
        if compiler and linker and (version := version_of([compiler], env=environment())):
            return Tools((compiler,), (linker,), version)
    if (zig := _find_zig()) and (version := version_of([zig, "cc"], env=environment())):
        return Tools((zig, "cc"), (zig, "wasm-ld"), f"zig {version}")
    raise UnavailableError(
        "no compiler for WebAssembly: neither clang and wasm-ld (sudo apt-get install clang-19 lld-19) "
        "nor ziglang is there (pip install 'schedlab[anywhere]')"
    )


def _find_zig() -> str | None:
    """Program of PyPI's ziglang, which need not be on the path."""
    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for program in ("zig", "zig.exe"):
            if (Path(folder) / program).is_file():
                return str(Path(folder) / program)
    return None


def _libraries(tools: Tools) -> list[str]:
    """C library and what the compiler itself calls; raises UnavailableError where they are missing."""
    if tools.is_zig:
        raise UnavailableError("zig links them by itself")
    runtime = ask(
        [*tools.compiler, "--target=wasm32-wasi", "-print-libgcc-file-name"], env=environment()
    ).stdout.strip()
    library = next((path for path in map(Path, ("/usr/lib/wasm32-wasi/libc.a",)) if path.is_file()), None)
    if library is None or not Path(runtime).is_file():
        raise UnavailableError(
            "the simulator's module needs a C library: sudo apt-get install wasi-libc libclang-rt-19-dev-wasm32, "
            "or pip install 'schedlab[anywhere]'"
        )
    return [str(library), runtime]


def unbuildable() -> str | None:
    """Why modules cannot be made here, or None; nothing is built to find that out."""
    try:
        tools = find_tools()
        if not tools.is_zig and not _brought().is_file():
            _libraries(tools)
    except UnavailableError as error:
        return str(error)
    if not paths.in_checkout() and not _brought().is_file():
        return "this wheel brings no module of the simulator; reinstall schedlab, or use a checkout"
    return None


def _brought() -> Path:
    """The simulator's module of a wheel."""
    return paths.compiled_folder() / "schedlab-sim.wasm"


def simulator_sources() -> list[Path]:
    """Files of the simulator's module, in the order of their names."""
    root = paths.resource_root()
    own = sorted(path for path in (root / "hosts/sim").glob("*.c") if path.name not in FOR_PROCESSES)
    return own + [root / path for path in SHARED_SOURCES]


def exported_names() -> list[str]:
    """Functions that a policy may call: the native simulator's list, held against the headers."""
    root = paths.resource_root()
    patterns = _EXPORTED.findall((root / "hosts/sim/exports.list").read_text())
    wanted = re.compile("|".join(pattern.replace("*", r"\w*") for pattern in patterns))
    texts = [path.read_text() for path in sorted((root / "include").rglob("*.h"))]
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    return sorted(word for word in words if wanted.fullmatch(word))


@lru_cache(maxsize=1)
def simulator_module() -> Path:
    """The simulator as a module: the wheel's, or one that is built from the checkout."""
    if _brought().is_file() or not paths.in_checkout():
        return _brought()
    tools = find_tools()
    root = paths.resource_root()
    digest = hashlib.sha256(repr((tools, SIM_FLAGS, LTO_FLAGS, exported_names())).encode())
    # Headers, and files that others include.
    for folder in ("core", "bpf", "player", "hosts/common", "hosts/sim", "include"):
        for path in sorted((root / folder).rglob("*.[ch]")):
            digest.update(path.read_bytes())
    result = paths.cache_folder("wasm") / f"schedlab-sim-{digest.hexdigest()[:32]}.wasm"
    if not result.is_file():
        with announced("building the simulator for WebAssembly, some seconds; it is kept"):
            build_simulator(result, tools)
    return result


def build_simulator(result: Path, tools: Tools) -> None:
    """Compile and link the simulator's module; raises as `simulator_module`."""
    root = paths.resource_root()
    with made_whole(result) as made:
        objects = []
        flags = [f"-I{root / path}" for path in INCLUDES] + [*SIM_FLAGS, *(() if tools.is_zig else LTO_FLAGS)]
        for source in simulator_sources():
            objects.append(f"{made.parent}/{source.parent.name}-{source.stem}.o")
            _run([*tools.compiler, "--target=wasm32-wasi", *flags, "-c", str(source), "-o", objects[-1]])
        options = [
            f"--global-base={POLICY_BYTES}", "--export-table", "--growable-table", "--export=__stack_pointer",
        ]  # fmt: skip
        if tools.is_zig:
            # It knows no --export-if-defined.
            defined = set().union(*(object_symbols(Path(path).read_bytes()).functions for path in objects))
            options += [f"--export={word}" for word in exported_names() if word in defined]
            _run(
                [*tools.compiler, "--target=wasm32-wasi", "-O2", "-s", "-mexec-model=reactor", *objects,
                 f"-Wl,-z,stack-size={SIM_STACK_BYTES}", *(f"-Wl,{option}" for option in options), "-o", str(made)]
            )  # fmt: skip
        else:
            options += [f"--export-if-defined={word}" for word in exported_names()]
            _run(
                [*tools.linker, "--no-entry", "--strip-debug", "--lto-O3", f"-zstack-size={SIM_STACK_BYTES}",
                 *options, *objects, *_libraries(tools), "-o", str(made)]
            )  # fmt: skip


def _run(command: list[str]) -> None:
    """Start a tool on our own files; raises SchedlabError with its messages."""
    answer = ask(command, env=environment())
    if answer.returncode:
        raise SchedlabError(f"{command[0]} failed:\n{(answer.stderr or answer.stdout).strip()[:4000]}")


def compile_wasm(policy: Policy) -> Path:
    """Compile a policy to a module, or find it in the cache."""
    tools = find_tools()
    support = paths.resource_root() / SUPPORT
    key = repr((policy.content_hash, tools, tools.policy_flags, support.read_bytes(), _own_code()))
    result = (
        paths.cache_folder("wasm") / f"{policy.name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.wasm"
    )
    if result.is_file():
        return result
    with announced(f"compiling {policy.path.name} for the sandbox; it is kept"), made_whole(result) as made:
        linked, sizes = _linked(policy, tools, support, made.parent)
        text = policy.path.read_text("utf-8", errors="replace")
        check_callbacks(policy.path, text)
        module = parse_module(linked)
        module.sizes = sizes
        _check_imports(policy, module)
        check_object(policy.path, text, module)
        called, signatures = _callbacks(policy)
        names = {index: called.get(what, what) for index, what in module.names.items()}
        called_as = {index: signatures[what] for index, what in module.names.items() if what in signatures}
        made.write_bytes(_with_sizes(metered(linked, names, called_as), sizes))
    return result


@lru_cache(maxsize=1)
def _own_code() -> bytes:
    """What makes a module out of what was linked."""
    return b"".join(
        Path(__file__).with_name(f"wasm_{part}.py").read_bytes() for part in ("build", "file", "meter")
    )


def _callbacks(policy: Policy) -> tuple[dict[str, str], dict[str, Signature]]:
    """Operation that each function is given to, and how the simulator calls functions, by the texts."""
    texts = [
        path.read_text("utf-8", errors="replace")
        for path in source_files(policy.path, is_inside=True).values()
        if not path.is_relative_to(paths.include_folder()) or path.parent.name == "policy"
    ]
    given = callback_names("\n".join(texts))
    signatures = {name: _signature(operations()[member]) for name, member in given.items()}
    for text in texts:
        signatures |= {name: (bytes([I64, I32]), bytes([I32])) for name in _LOOP.findall(text)}
        signatures |= {name: (bytes([I32] * 3), bytes([I32])) for name in _TIMER.findall(text)}
    return given, signatures


def _signature(prototype: Prototype) -> Signature:
    kinds = [
        I64 if "*" not in each and each.split()[0] in ("u64", "s64") else I32 for each in prototype.arguments
    ]
    return bytes(kinds), b"" if prototype.result == "void" else bytes([I32])


def _linked(policy: Policy, tools: Tools, support: Path, scratch: Path) -> tuple[bytes, dict[str, int]]:
    """Bytes of the module, and sizes of its variables."""
    target = "--target=wasm32-freestanding" if tools.is_zig else "--target=wasm32"
    objects = [scratch / "policy.o", scratch / "support.o"]
    flags = [*tools.compiler, target, *tools.policy_flags, "-I", str(paths.include_folder())]
    confined = _confined(policy, tools, support, scratch)
    overlay = scratch / "files.json"
    overlay.write_text(json.dumps(_only_files(policy, tools)), encoding="utf-8")
    command = [
        *confined,
        *flags,
        *struct_ops_flags(policy.path),
        "-Xclang",
        "-ivfsoverlay",
        "-Xclang",
        str(overlay),
    ]
    answer = _start([*command, "-c", str(policy.path), "-o", str(objects[0])], policy, scratch)
    if answer.returncode:
        raise PolicyError(f"{policy.path} does not compile:\n{compiler_messages(answer)}")
    _run([*flags, *SUPPORT_FLAGS, "-c", str(support), "-o", str(objects[1])])
    module = scratch / "policy.wasm"
    answer = _start(
        [*confined, *tools.linker, *LINK_FLAGS, *map(str, objects), "-o", str(module)], policy, scratch
    )
    if answer.returncode:
        raise PolicyError(f"{policy.path} cannot be linked:\n{compiler_messages(answer)}")
    return module.read_bytes(), object_symbols(objects[0].read_bytes()).sizes


def _confined(policy: Policy, tools: Tools, support: Path, scratch: Path) -> list[str]:
    """Beginning of a command that can open the policy's files, the tools' own and `scratch`."""
    readable = [*_files_of(tools), str(paths.include_folder()), str(support)]
    readable += [str(path.resolve()) for path in source_files(policy.path, is_inside=True).values()]
    writable = [str(scratch), *([environment()["ZIG_GLOBAL_CACHE_DIR"]] if tools.is_zig else [])]
    return jail.command(readable, writable)


@lru_cache(maxsize=4)
def _files_of(tools: Tools) -> tuple[str, ...]:
    """What the tools read of their own: programs, libraries, and a compiler's headers."""
    found = {os.path.realpath(command[0]) for command in (tools.compiler, tools.linker)}
    if tools.is_zig:
        found.add(os.path.dirname(tools.compiler[0]))
    for program in list(found):
        if (ldd := shutil.which("ldd")) and os.path.isfile(program):
            listed = ask([ldd, program]).stdout
            found |= {os.path.realpath(path) for path in re.findall(r"(/\S+) \(0x", listed)}
    if not tools.is_zig:
        found.add(os.path.join(ask([*tools.compiler, "-print-resource-dir"]).stdout.strip(), "include"))
    return (*sorted(found), "/etc/ld.so.cache", "/proc/self/exe", "/dev/urandom")


def _start(command: list[str], policy: Policy, scratch: Path) -> subprocess.CompletedProcess[str]:
    """Start a tool on somebody's file, with nothing of the user's environment."""
    keep = {
        name: value for name, value in environment().items() if name.startswith(("ZIG_", "LC_", "SYSTEMROOT"))
    }
    late = PolicyError(f"{policy.path}: the compiler had not ended after {COMPILE_SECONDS_MAX} s")
    environment_there = keep | {"TMPDIR": str(scratch), "PATH": "/usr/bin:/bin"}
    return ask(command, seconds_max=COMPILE_SECONDS_MAX, late=late, env=environment_there)


def _only_files(policy: Policy, tools: Tools) -> dict[str, object]:
    """A file system for clang that has the policy's files, and headers of schedlab and of the compiler.

    Of any other file clang cannot even say whether it exists: not by an include, by a macro
    such as `__has_include`, or by a pragma.
    """
    own = [str(path) for path in source_files(policy.path, is_inside=True).values()]
    found = dict.fromkeys(map(os.path.abspath, [*own, str(paths.include_folder()), *_files_of(tools)]))
    roots = [
        {
            "type": "directory-remap" if os.path.isdir(path) else "file",
            "name": path,
            "external-contents": path,
        }
        for path in found
        if os.path.isdir(path) or path in map(os.path.abspath, own)
    ]
    return {"version": 0, "redirecting-with": "redirect-only", "use-external-names": False, "roots": roots}


def _check_imports(policy: Policy, module: Module) -> None:
    """Refuse what is no function of the simulator, and more memory than there is room for."""
    for origin, what, _, minimum in module.imports:
        if origin != "env":
            raise PolicyError(
                f"{policy.path}: it imports {what} of {origin}; a policy calls what include/scx declares"
            )
        if what == "memory" and minimum << 16 > POLICY_BYTES:
            raise PolicyError(
                f"{policy.path}: its variables need {minimum >> 4} MiB; in the sandbox there are {POLICY_BYTES >> 20}"
            )


def _with_sizes(data: bytes, sizes: dict[str, int]) -> bytes:
    """The module with the sizes of its variables, as a section of its own."""
    content = name(SIZES) + unsigned(len(sizes))
    content += b"".join(name(variable) + unsigned(size) for variable, size in sizes.items())
    return data + bytes([CUSTOM]) + unsigned(len(content)) + content
