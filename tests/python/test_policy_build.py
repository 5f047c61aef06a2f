# SPDX-License-Identifier: MIT
"""Policies: found, read, compiled, cached, and their knobs held to their ranges."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

import pytest

from schedlab.cli import doctor
from schedlab.errors import NotFoundError, PolicyError, UnavailableError, UsageError
from schedlab.policy import bpf, invariants
from schedlab.policy import build as policy_build
from schedlab.policy.build import build_policy, compile_policy, find_compiler
from schedlab.policy.check import operations
from schedlab.policy.elf import ElfFile
from schedlab.policy.find import (
    find_policy,
    list_policies,
    load_policy,
    parse_settings,
    policy_hash,
    show_range,
    show_value,
)
from schedlab.policy.invariants import CHECK_FLAG

SOURCE = """\
/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * mine.bpf.c - tasks run in the order of their arrival. More words.
 *
 * @knob slice_ns ns 100us 10s  how long a task may run
 *	before the next one gets the CPU
 * @knob depth levels 1 8  how deep
 * @knob bias count -5 5  may be negative
 * @knob is_odd bool 0 1  whether
 * @work-conserving yes  one shared queue
 * @source a test
 */
#include <scx/common.bpf.h>

const volatile u64 slice_ns = 20000000;
const volatile u32 depth = 4;
const volatile s32 bias = -1;
const volatile bool is_odd = false;
char _license[] SEC("license") = "GPL";

void BPF_STRUCT_OPS(mine_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice_ns, enq_flags);
}

SCX_OPS_DEFINE(mine_ops, .enqueue = (void *)mine_enqueue, .name = "mine");
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def write(tmp_path):
    """Function that writes a policy, with replacements, and returns its path."""

    def make(*replacements: tuple[str, str], name="mine.bpf.c") -> str:
        text = SOURCE
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return make


# ---- finding ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rrr", "unknown policy 'rrr' .did you mean 'rr'"),
        ("", "unknown policy ''"),
        ("./absent.bpf.c", "policy './absent.bpf.c': no such file"),
        ("absent.c", "policy 'absent.c': no such file"),
        ("/tmp/", "policy '/tmp/': is a folder"),
    ],
)
def test_what_is_not_there_is_refused(name, message):
    with pytest.raises(NotFoundError, match=message):
        find_policy(name)


def test_a_file_here_without_its_path_gets_a_hint(write, tmp_path, monkeypatch):
    write()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError, match=r"write './mine\.bpf\.c'"):
        find_policy("mine")
    assert load_policy("./mine.bpf.c").name == "mine"


def test_every_policy_of_the_project_loads():
    for name in list_policies():
        policy = load_policy(name)
        assert policy.name == name
        assert policy.summary
        assert policy.work_conserving is not None


# ---- the header comment -----------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@knob depth levels 1 8  how deep", "@knob depth 1", r":7: '@knob depth 1' should read"),
        ("levels 1 8", "levels 8 1", r":7: @knob depth: MIN 8 is above MAX 1"),
        ("levels 1 8", "levels one 8", r":7: @knob depth: 'one' is not a number"),
        ("levels 1 8", "levels 1ms 8", r":7: @knob depth: '1ms' is a time, but the unit is levels"),
        ("@knob depth", "@knob slice_ns", r":7: @knob slice_ns is declared twice"),
        ("@work-conserving yes", "@work-conserving maybe", r":10: .* yes or no, not 'maybe'"),
        ("@work-conserving yes", "@quotas with groups", r":10: @quotas must be .* a @knob that stands above"),
        ("@work-conserving yes", "@quotas slice_ns", r":10: @quotas must be followed by with"),
    ],
)
def test_malformed_declarations_are_refused_with_their_line(write, old, new, message):
    with pytest.raises(PolicyError, match=r"mine\.bpf\.c" + message):
        load_policy(write((old, new)))


def test_header_is_read(write):
    policy = load_policy(write())
    assert policy.summary == "tasks run in the order of their arrival"
    assert (policy.work_conserving, policy.work_conserving_reason) == (True, "one shared queue")
    assert policy.source_text == "a test"
    assert list(policy.knobs) == ["slice_ns", "depth", "bias", "is_odd"]
    knob = policy.knobs["slice_ns"]
    assert (knob.unit, knob.minimum, knob.maximum, knob.line) == ("ns", 100_000, 10**10, 5)
    assert knob.text == "how long a task may run before the next one gets the CPU"


def test_a_policy_without_a_header_declares_nothing(tmp_path):
    path = tmp_path / "bare.bpf.c"
    path.write_text(SOURCE[SOURCE.index("#include") :])
    policy = load_policy(str(path))
    assert policy.knobs == {}
    assert policy.work_conserving is None
    assert build_policy(policy).values == {}


# ---- settings ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("mine.slice=5ms", "has no knob 'slice' .did you mean 'slice_ns'"),
        ("mime.slice_ns=5ms", "policy 'mime' takes no part in this run .did you mean 'mine'"),
        ("slice_ns=5ms", "should read POLICY.KNOB=VALUE"),
        ("mine.slice_ns", "should read POLICY.KNOB=VALUE"),
        ("mine.slice_ns=", "should read POLICY.KNOB=VALUE"),
        ("mine.slice_ns=11s", "11s is out of range: slice_ns goes from 100us to 10s"),
        ("mine.slice_ns=0", "0 is out of range"),
        ("mine.slice_ns=5MiB", "'5MiB' is a size, but the unit is ns"),
        ("mine.slice_ns=5mss", "unknown unit 'mss'"),
        ("mine.slice_ns=1000000.5ns", "not a whole number of ns"),
        ("mine.slice_ns=1", "'1' has no unit, and slice_ns is a time; write 1ns, or another unit of time"),
        ("mine.slice_ns=150_000", "'150_000' has no unit"),
        ("mine.slice_ns=15.0", "'15.0' has no unit"),
        ("mine.slice_ns=1ms,2", "'2' has no unit"),
        ("mine.depth=2ms", "'2ms' is a time, but the unit is levels"),
        ("mine.is_odd=2", "2 is out of range: is_odd goes from no to yes"),
    ],
)
def test_wrong_settings_are_refused(write, setting, message):
    policy = load_policy(write())
    with pytest.raises(UsageError, match=message):
        parse_settings([setting], {"mine": policy})


def test_all_wrong_settings_are_named_at_once(write):
    policy = load_policy(write())
    with pytest.raises(UsageError) as caught:
        parse_settings(["mine.depth=9", "mine.depht=1"], {"mine": policy})
    assert str(caught.value).count("--set") == 2


def test_settings_are_read_with_units(write):
    policy = load_policy(write())
    settings = [
        "mine.slice_ns=100ms",
        "mine.depth=0x3",
        "mine.bias=-5",
        "mine.is_odd=yes",
        "mine.slice_ns=2.5ms",
    ]
    variants = parse_settings(settings, {"mine": policy})
    assert list(variants) == ["mine"] and variants["mine"].policy is policy
    values = variants["mine"].values
    assert values == {"slice_ns": 2_500_000, "depth": 3, "bias": -5, "is_odd": 1}
    shown = [show_value(policy.knobs[name], value) for name, value in values.items()]
    assert shown == ["2500us", "3", "-5", "yes"]
    plain = parse_settings(["mine.slice_ns=150000ns"], {"mine": policy})
    assert plain["mine"].values == {"slice_ns": 150_000}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("mine.depth=1,9", "9 is out of range"),
        ("mine.depth=1,,2", "should read POLICY.KNOB=VALUE"),
        ("mine.slice_ns=1ms,1000us", "one value is given twice"),
        ("mine.slice_ns=" + ",".join(f"{100_000 + i}ns" for i in range(1001)), "more than 1000 variants"),
    ],
)
def test_wrong_variants_are_refused(write, setting, message):
    with pytest.raises(UsageError, match=message):
        parse_settings([setting], {"mine": load_policy(write())})


def test_several_values_make_variants(write):
    mine, other = load_policy(write()), load_policy(write(name="other.bpf.c"))
    settings = ["mine.slice_ns=1ms,2500us", "mine.depth=2", "mine.is_odd=no,yes"]
    variants = parse_settings(settings, {"mine": mine, "other": other})
    assert {name: variant.values for name, variant in variants.items()} == {
        "mine:slice_ns=1ms,is_odd=no": {"slice_ns": 1_000_000, "depth": 2, "is_odd": 0},
        "mine:slice_ns=1ms,is_odd=yes": {"slice_ns": 1_000_000, "depth": 2, "is_odd": 1},
        "mine:slice_ns=2500us,is_odd=no": {"slice_ns": 2_500_000, "depth": 2, "is_odd": 0},
        "mine:slice_ns=2500us,is_odd=yes": {"slice_ns": 2_500_000, "depth": 2, "is_odd": 1},
        "other": {},
    }


# ---- values with names ------------------------------------------------------

NAMED = ("levels 1 8", "enum never=0,same-core=2,always=7")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("enum never,always", "'never' should read WORD=N"),
        ("enum never=0,", "'' should read WORD=N"),
        ("enum never=0,always=x", "'always=x' should read WORD=N"),
        ("enum never=0,never=1", "'never=1' is there twice"),
        ("enum never=0 always=1", "give two values or more"),
        ("enum never=0,always=0", "'always=0' is there twice"),
    ],
)
def test_malformed_names_of_values_are_refused(write, line, message):
    with pytest.raises(PolicyError, match=message):
        build_policy(load_policy(write(("levels 1 8", line))))


def test_values_have_names(write):
    policy = load_policy(write(NAMED, ("depth = 4", "depth = 7")))
    knob = policy.knobs["depth"]
    assert (knob.minimum, knob.maximum, knob.text) == (0, 7, "how deep")
    assert show_range(knob) == "never, same-core, always"
    for text, value in (("same-core", 2), ("2", 2), ("0x7", 7)):
        variants = parse_settings([f"mine.depth={text}"], {"mine": policy})
        assert variants["mine"].values == {"depth": value}
    both = parse_settings(["mine.depth=never,7"], {"mine": policy})
    assert list(both) == ["mine:depth=never", "mine:depth=always"]
    for wrong in ("1", "8", "allways"):
        with pytest.raises(UsageError, match=rf"depth has no value '{wrong}' .*always"):
            parse_settings([f"mine.depth={wrong}"], {"mine": policy})


def test_a_default_must_have_a_name(write):
    with pytest.raises(PolicyError, match=":7: the default of depth is 4, which has no name"):
        build_policy(load_policy(write(NAMED)))


# ---- compiling --------------------------------------------------------------


def line_of(text: str) -> int:
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("slice_ns, enq_flags);", "slice_ns, enq_flags)", "expected"),
        ("scx_bpf_dsq_insert(p", "scx_bpf_dsq_inset(p", "scx_bpf_dsq_insert"),
        ("scx_bpf_dsq_insert(p,", "scx_bpf_dsq_insert(enq_flags,", "struct task_struct"),
    ],
)
def test_compile_errors_stand_on_the_users_line(write, old, new, message):
    path = write((old, new))
    with pytest.raises(PolicyError, match=message) as caught:
        build_policy(load_policy(path))
    lines = [line_of("scx_bpf_dsq_insert(p") + extra for extra in (0, 1)]
    assert any(f"mine.bpf.c:{line}:" in str(caught.value) for line in lines)


def test_long_messages_are_cut(write):
    path = write(("u64 slice_ns", "\n".join(f"u46 a{i};" for i in range(300)) + "\nu64 slice_ns"))
    with pytest.raises(PolicyError, match=r"\(\d+ more lines\)"):
        build_policy(load_policy(path))


@pytest.mark.parametrize("engine", ["native", "wasm"])
def test_operations_may_be_defined_as_in_linux_documentation(write, engine):
    """`SEC(".struct_ops.link")`, which no macro can see."""
    form = 'SEC(".struct_ops.link")\nstruct sched_ext_ops mine_ops = {\n\t'
    path = write(("SCX_OPS_DEFINE(mine_ops, ", form), ('.name = "mine");', '.name = "mine"\n};'))
    assert "SCX_OPS_DEFINE" not in Path(path).read_text()
    assert build_policy(load_policy(path), engine=engine).values["slice_ns"] == 20_000_000


def test_a_file_without_operations_is_refused(write):
    path = write((SOURCE[SOURCE.index("SCX_OPS_DEFINE") :], ""))
    with pytest.raises(PolicyError, match="defines no policy; end the file with SCX_OPS_DEFINE"):
        build_policy(load_policy(path))


def test_knobs_are_held_against_the_symbols(write):
    path = write(("const volatile u32 depth", "const volatile u32 depht"))
    with pytest.raises(PolicyError, match=r":7: @knob depth: .*did you mean 'depht'"):
        build_policy(load_policy(path))
    path = write(("volatile u32 depth = 4", "volatile u32 depth = 9"))
    with pytest.raises(PolicyError, match=r":7: the default of depth is 9, outside its own range"):
        build_policy(load_policy(path))


@pytest.mark.parametrize(
    ("old", "new"),
    [("levels 1 8", "levels 1 5000000000"), ("count -5 5", "count -5 3000000000"),
     ("count -5 5", "count -3000000000 5"), ("bool 0 1", "number 0 256"),
     ("100us 10s", "1 99999999999999999999")],
)  # fmt: skip
def test_ranges_are_held_against_the_symbols(write, old, new):
    with pytest.raises(PolicyError, match="its range leaves the variable, which has"):
        build_policy(load_policy(write((old, new))))


@pytest.mark.parametrize(
    "line", ['#include "/dev/zero"', "char huge[1ul << 40] = {1};"], ids=["endless", "huge"]
)
def test_a_source_cannot_eat_the_machine(write, monkeypatch, line):
    monkeypatch.setattr(policy_build, "COMPILE_KIB_MAX", 256 << 10)
    path = write(("#include <scx/common.bpf.h>", f"#include <scx/common.bpf.h>\n{line}"))
    with pytest.raises(PolicyError, match="does not compile"):
        build_policy(load_policy(path))
    # Nor do its parts stay behind.
    assert list(policy_build.paths.cache_folder("policies").iterdir()) == []


def test_no_compiler_is_said_with_the_remedy(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(UnavailableError, match="CC=no-such-compiler.*apt-get install gcc"):
        find_compiler()


def test_defaults_come_from_the_compiled_file(write):
    built = build_policy(load_policy(write()))
    assert built.values == {"slice_ns": 20_000_000, "depth": 4, "bias": -1, "is_odd": 0}
    assert built.policy_hash == policy_hash(built.policy, built.values)


def test_the_cache_is_used_and_keyed_by_content(write, monkeypatch):
    first = compile_policy(load_policy(write()))
    before = first.stat().st_mtime_ns

    def refuse(*arguments, **options):
        raise AssertionError("compiled again")

    with monkeypatch.context() as patched:
        patched.setattr(policy_build.subprocess, "run", refuse)
        assert compile_policy(load_policy(write())) == first
    assert first.stat().st_mtime_ns == before
    assert compile_policy(load_policy(write(("enq_flags);", "enq_flags | 0);")))) != first
    monkeypatch.setattr(policy_build, "FLAGS", (*policy_build.FLAGS, "-DX=1"))
    assert compile_policy(load_policy(write())) != first
    left = [path.name for path in first.parent.iterdir() if path.suffix != ".so"]
    assert left == []


def test_what_is_written_around_a_policy_is_part_of_the_key(write, tmp_path, monkeypatch):
    path = write((" * @source a test", " * @source a test\n * @invariant slice_ns > 0"))
    held = compile_policy(load_policy(str(path)), more_flags=(CHECK_FLAG,))
    (tmp_path / "elsewhere").mkdir()
    copy = shutil.copy(path, tmp_path / "elsewhere")
    assert compile_policy(load_policy(str(copy)), more_flags=(CHECK_FLAG,)) == held
    before = invariants._BEFORE
    monkeypatch.setattr(invariants, "_BEFORE", f"{before}int of_another_version;\n")
    assert compile_policy(load_policy(str(path)), more_flags=(CHECK_FLAG,)) != held


def test_own_headers_take_part_in_hash_and_cache(write, tmp_path):
    header = tmp_path / "own.h"
    header.write_text("#define DEPTH 4\n")
    path = write(
        ("#include <scx/common.bpf.h>", '#include <scx/common.bpf.h>\n#include "own.h"'),
        ("depth = 4", "depth = DEPTH"),
    )
    first = build_policy(load_policy(path))
    header.write_text("#define DEPTH 5\n")
    second = build_policy(load_policy(path))
    assert (first.values["depth"], second.values["depth"]) == (4, 5)
    assert first.policy_hash != second.policy_hash


def test_the_hash_tells_knobs_apart_but_not_places(write):
    policy = load_policy(write())
    plain, other = build_policy(policy), build_policy(policy, {"depth": 5})
    assert plain.policy_hash != other.policy_hash
    assert plain.shared_object == other.shared_object
    moved = build_policy(load_policy(write(name="moved.bpf.c")))
    assert moved.policy_hash == plain.policy_hash


# ---- symbols ----------------------------------------------------------------


def test_what_is_no_object_is_refused(tmp_path):
    path = tmp_path / "x.so"
    path.write_bytes(b"\x7fELF\x01\x01 a 32-bit one")
    with pytest.raises(PolicyError, match="not a 64-bit little-endian ELF file"):
        ElfFile(path).objects()


def test_a_truncated_object_is_refused(write, tmp_path):
    whole = compile_policy(load_policy(write())).read_bytes()
    path = tmp_path / "cut.so"
    for size in (60, 64, len(whole) // 2, len(whole) - 70):
        path.write_bytes(whole[:size])
        with pytest.raises(PolicyError, match="damaged ELF file"):
            ElfFile(path).objects()


def test_symbols_without_bytes_in_the_file_are_zero(write):
    path = write(("char _license", "u64 counter;\nchar _license"))
    assert ElfFile(compile_policy(load_policy(path))).objects()["counter"] == bytes(8)


def test_the_cache_must_be_ones_own(tmp_path, monkeypatch):
    from schedlab import paths

    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    folder = paths.cache_folder("policies")
    assert folder.is_dir()
    assert folder.stat().st_uid == os.getuid()
    assert not folder.is_relative_to(blocked)


def test_the_root_must_be_one(monkeypatch, tmp_path, root):
    from schedlab import paths
    from schedlab.errors import SchedlabError

    monkeypatch.setenv("SCHEDLAB_ROOT", str(tmp_path))
    with pytest.raises(SchedlabError, match="SCHEDLAB_ROOT=.*set it to a schedlab checkout"):
        paths.resource_root()
    monkeypatch.setenv("SCHEDLAB_ROOT", str(root))
    assert paths.resource_root() == Path(root)
    assert paths.policies_folder() == Path(root) / "policies"


# ---- what Linux refuses -----------------------------------------------------

ENQUEUE_LINE = (
    SOURCE.splitlines().index("void BPF_STRUCT_OPS(mine_enqueue, struct task_struct *p, u64 enq_flags)") + 1
)


@pytest.mark.parametrize(
    ("declaration", "call", "texts"),
    [
        (
            "int printf(const char *format, ...);",
            'printf("%d", p->pid);',
            ["printf() is not there", "use bpf_printk()"],
        ),
        ("int usleep(unsigned us);", "usleep(1);", ["usleep() is not there", "no C library"]),
        ("void *malloc(unsigned long bytes);", "if (!malloc(8)) return;", ["malloc() is not there"]),
    ],
)
def test_a_call_of_the_c_library_is_refused_with_its_line(write, declaration, call, texts):
    path = write(
        ("void BPF_STRUCT_OPS", f"{declaration}\nvoid BPF_STRUCT_OPS"),
        ("\tscx_bpf", f"\t/* not here: {call} */\n\t{call}\n\tscx_bpf"),
    )
    with pytest.raises(PolicyError) as caught:
        build_policy(load_policy(path))
    # A declaration, the head, the brace and a comment stand before it.
    assert str(caught.value).startswith(f"{path}:{ENQUEUE_LINE + 4}: ")
    for text in texts:
        assert text in str(caught.value)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no such flag of the compiler")
def test_floating_point_is_refused_with_its_line(write):
    path = write(
        ("void BPF_STRUCT_OPS", "static double mean;\nvoid BPF_STRUCT_OPS"),
        ("\tscx_bpf", "\tmean = mean * 0.9 + p->scx.weight * 0.1;\n\tscx_bpf"),
    )
    with pytest.raises(PolicyError) as caught:
        build_policy(load_policy(path))
    message = str(caught.value)
    assert f"{path}:{ENQUEUE_LINE + 3}" in message or "floating point is not there" in message
    assert "floating point" in message


@pytest.mark.parametrize(
    ("licence", "text"),
    [("", "it has no licence"), ('char _license[] SEC("license") = "Proprietary";', "'Proprietary'")],
)
def test_a_licence_that_linux_does_not_load_is_refused(write, licence, text):
    path = write(('char _license[] SEC("license") = "GPL";', licence))
    with pytest.raises(PolicyError) as caught:
        build_policy(load_policy(path))
    assert text in str(caught.value)
    assert 'add char _license[] SEC("license") = "GPL";' in str(caught.value)


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_what_compilers_call_by_themselves_is_accepted(write, monkeypatch, compiler):
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed; sudo apt-get install {compiler}")
    monkeypatch.setenv("CC", compiler)
    path = write(
        ("void BPF_STRUCT_OPS", "static struct { char x[300]; } one, other;\nvoid BPF_STRUCT_OPS"),
        (
            "\tscx_bpf",
            "\tif (!__builtin_memcmp(&one, &other, sizeof(one)))\n\t\tother.x[p->pid % 300] = 1;\n\tscx_bpf",
        ),
    )
    assert build_policy(load_policy(path))


@pytest.mark.parametrize("licence", ["GPL v2", "Dual MIT/GPL"])
def test_other_licences_that_linux_loads_are_accepted(write, licence):
    assert build_policy(load_policy(write(('"GPL"', f'"{licence}"'))))


@pytest.mark.parametrize(
    ("head", "text"),
    [
        ("void BPF_STRUCT_OPS(mine_enqueue, struct task_struct *p, u64 enq_flags, u64 more)",
         "takes 3 arguments (struct task_struct *p, u64 enq_flags, u64 more), of which there are 2"),
        ("void BPF_STRUCT_OPS(mine_enqueue, s32 cpu, struct task_struct *p)",
         "takes 's32 cpu', where Linux passes 'struct task_struct *p'"),
        ("void BPF_STRUCT_OPS(mine_enqueue, struct scx_exit_info *p, u64 enq_flags)",
         "takes 'struct scx_exit_info *p', where Linux passes 'struct task_struct *p'"),
    ],
)  # fmt: skip
def test_arguments_that_a_callback_does_not_have_are_refused(write, head, text):
    path = write(
        (
            "void BPF_STRUCT_OPS(mine_enqueue, struct task_struct *p, u64 enq_flags)\n{",
            f"{head}\n{{\n\tstruct task_struct *q = NULL;",
        ),
        ("insert(p,", "insert(q,"),
        ("slice_ns, enq_flags", "slice_ns, 0"),
    )
    with pytest.raises(PolicyError) as caught:
        build_policy(load_policy(path))
    assert str(caught.value) == (
        f"{path}:{ENQUEUE_LINE}: mine_enqueue() {text}; ops.enqueue is void enqueue(struct task_struct *p, u64 enq_flags)"
    )


def test_a_result_that_linux_reads_must_be_given(write):
    path = write(
        (
            "SCX_OPS_DEFINE",
            "void BPF_STRUCT_OPS(mine_select_cpu, struct task_struct *p)\n{\n}\nSCX_OPS_DEFINE",
        ),
        (".name", ".select_cpu = (void *)mine_select_cpu, .name"),
    )
    with pytest.raises(
        PolicyError, match=r"mine_select_cpu\(\) returns nothing, where Linux reads a result of type s32"
    ):
        build_policy(load_policy(path))


def test_last_arguments_may_be_left_out_and_widths_may_differ(write):
    path = write(
        ("struct task_struct *p, u64 enq_flags)\n", "struct task_struct *p)\n"),
        ("slice_ns, enq_flags", "slice_ns, 0"),
        (
            "SCX_OPS_DEFINE",
            "void BPF_STRUCT_OPS(mine_runnable, struct task_struct *p, u32 flags)\n{\n}\nSCX_OPS_DEFINE",
        ),
        (".name", ".runnable = (void *)mine_runnable, .name"),
    )
    assert build_policy(load_policy(path))


def test_every_callback_has_a_prototype():
    assert len(operations()) == 34
    assert str(operations()["dispatch"]) == "(s32 cpu, struct task_struct *prev)"
    assert operations()["init"].arguments == ()


# ---- clang's second opinion ---------------------------------------------------


def asked_of_clang(monkeypatch) -> list:
    """The policies that clang for BPF is asked about from now on; skips where there is none."""
    try:
        bpf.second_opinion_compiler()
    except UnavailableError as error:
        pytest.skip(str(error))
    asked, run = [], bpf._run
    monkeypatch.setattr(bpf, "_run", lambda command, **named: asked.append(command) or run(command, **named))
    return asked


def test_a_run_in_the_guest_compiles_a_policy_once(write, monkeypatch):
    """It did so twice: once to read the variables, and again for what was loaded."""
    asked = asked_of_clang(monkeypatch)
    policy = load_policy(write())
    built = build_policy(policy, engine="bpf")
    assert len(asked) == 1
    assert bpf.compile_object(policy.path) == built.shared_object and len(asked) == 1


SIX = "static __attribute__((noinline)) int six(int a, int b, int c, int d, int e, int f) { return a + b * c - d * e + f; }"


@pytest.mark.parametrize(
    ("declaration", "line", "place", "text"),
    [
        # Of the stack clang knows the function.
        (
            "",
            "volatile char big[600]; big[(u64)p->pid % 600] = 1;",
            1,
            "Looks like the BPF stack limit is exceeded",
        ),
        (
            SIX,
            "if (six(p->pid, p->tgid, p->scx.weight, p->scx.slice, enq_flags, p->scx.flags)) return;",
            3,
            "too many arguments",
        ),
    ],
)
def test_what_clang_refuses_for_bpf_is_refused_with_its_line(
    write, monkeypatch, declaration, line, place, text
):
    asked_of_clang(monkeypatch)
    path = write(
        ("void BPF_STRUCT_OPS", f"{declaration}\nvoid BPF_STRUCT_OPS"), ("\tscx_bpf", f"\t{line}\n\tscx_bpf")
    )
    for _ in range(2):  # a refusal is not remembered
        with pytest.raises(PolicyError, match="compiles here and not for Linux, says clang") as caught:
            build_policy(load_policy(path))
        assert f"\n{path}:{ENQUEUE_LINE + place}: {text}" in str(caught.value)
        assert "non-kernel" not in str(caught.value)


def test_clang_is_asked_once_for_a_content(write, monkeypatch):
    asked = asked_of_clang(monkeypatch)
    path = write()
    for text in (SOURCE, SOURCE + "/* other */\n"):
        Path(path).write_text(text)
        asked.clear()
        for _ in range(3):
            build_policy(load_policy(path))
        assert len([command for command in asked if path in command]) == 1


def test_what_is_no_error_of_clangs_on_a_line_refuses_nothing(write, monkeypatch):
    monkeypatch.setattr(bpf, "second_opinion_compiler", lambda: sys.executable)
    for said in ("", "clang: error: clang frontend command failed with exit code 139", None):
        monkeypatch.setattr(bpf, "_run", lambda command, said=said: said)
        assert build_policy(load_policy(write(("a test", f"{said}"))))


def test_without_clang_policies_build_and_doctor_says_so(write, monkeypatch):
    monkeypatch.setattr(bpf, "BPF_COMPILERS", ("no-such-clang",))
    assert build_policy(load_policy(write()))
    (found,) = [each for each in doctor.examine() if each["name"] == "clang for BPF"]
    assert (found["status"], found["needed"]) == ("missing", False)
    assert "by names and prototypes only" in found["detail"]
