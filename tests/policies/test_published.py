# SPDX-License-Identifier: MIT
"""A scheduler of several files: its sources, its library, and the part of its user half that is in C.

The checkout that is compiled here is a small one of our own, laid out as `sched-ext/scx` is.
"""

from __future__ import annotations

import shutil

import pytest

import schedlab
from schedlab.errors import NotFoundError, PolicyError
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.policy.launch_file import launch_file
from schedlab.policy.published import Published, flags_of, main_file

POLICY = """
char _license[] SEC("license") = "GPL";
void BPF_STRUCT_OPS(own_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}
"""
SMALL = (
    f"#include <scx/common.bpf.h>\n{POLICY}"
    'SCX_OPS_DEFINE(own_ops, .enqueue = (void *)own_enqueue, .name = "own");\n'
)
OPS = '.enqueue = (void *)own_enqueue, .init = (void *)own_init, .name = "own"'
FILES = {
    "scheds/include/lib/own.h": "#pragma once\nint own_answer(void);\n",
    "lib/own.bpf.c": "#include <scx/common.bpf.h>\n#include <lib/own.h>\n"
    'char _license[] SEC("license") = "GPL";\n__weak int own_answer(void) { return 42; }\n',
    "scheds/rust/scx_own/build.rs": 'b.enable_skel("src/bpf/main.bpf.c", "bpf")\n'
    '.add_source("src/bpf/other.bpf.c")\n.add_source("src/bpf/lib/own.bpf.c");\n',
    "scheds/rust/scx_own/src/bpf/lib": "../../../../../lib",
    "scheds/rust/scx_own/src/bpf/scx_other": "../../../scx_other/src/bpf",
    "scheds/rust/scx_other/src/bpf/shared.h": "#define SHARED 7\n",
    "scheds/rust/scx_own/src/bpf/other.bpf.c": "#include <scx/common.bpf.h>\n"
    "const volatile u32 nr_cpu_ids = 1;\nu32 table[4];\nu64 nothing;\nstruct node { u64 unused; u64 value; } *none;\n",
    "scheds/rust/scx_own/src/bpf/main.bpf.c": """
#include <scx/common.bpf.h>
#include <bpf_arena_common.bpf.h>
#include <bpf_arena_spin_lock.h>
#include <bpf/bpf_helpers.h>
#include <lib/own.h>
#include "scx_other/shared.h"
extern const volatile u32 nr_cpu_ids;
extern u32 table[4];
extern u64 nothing;
extern struct node { u64 unused; u64 value; } *none;
struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4);
} arena __weak SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");
s32 BPF_STRUCT_OPS_SLEEPABLE(own_init)
{
	u64 __arena *first = bpf_arena_alloc_pages(&arena, NULL, 3, NUMA_NO_NODE, 0);
	arena_spinlock_t __arena *lock = (void __arena *)(first + 8);
	int nr_records = 0;

	bpf_printk("answer %d shared %d", own_answer(), SHARED);
	bpf_printk("cpus %u table %u %u", nr_cpu_ids, table[0], table[3]);
	bpf_printk("page %llu word %llu full %d", (u64)first % 4096, first[1023],
		   !bpf_arena_alloc_pages(&arena, NULL, 2, NUMA_NO_NODE, 0));
	first[1] = 33;
	bpf_printk("divided %llu %llu", 100 / nothing, 100 % nothing);
	bpf_printk("signed %lld %lld", -7LL / (s64)nothing, -7LL % (s64)nothing);
	bpf_printk("null %llu", none->value);
	none->value = 44;
	bpf_printk("first page %llu", first[1]);
	bpf_printk("locked %d", arena_spin_lock(lock));
	arena_spin_unlock(lock);
	while (nr_records < 100 && bpf_ringbuf_reserve(&ring, 500, 0))
		nr_records++;
	bpf_printk("records %d", nr_records);
	bpf_arena_free_pages(&arena, first, 3);
	bpf_printk("again %d", !!bpf_arena_alloc_pages(&arena, NULL, 4, NUMA_NO_NODE, 0));
	return 0;
}
SCX_OPS_DEFINE(own_ops, OPS);
""".replace("SCX_OPS", POLICY + "SCX_OPS").replace("OPS);", OPS + ");"),
    "scheds/rust/scx_own/src/bpf/scx_own.launch.c": """
#include <scx/launch.h>
static int launch(void)
{
	/* There is no scheduler yet that could fail. */
	scx_bpf_error("reported too early");
	SL_SET(nr_cpu_ids, scx_bpf_nr_cpu_ids());
	table[0] = sl_index_of(sl_scx_cpu_llc_id, 3);
	table[3] = (u32)sl_scx_cpu_core_id(3);
	return 0;
}
""",
}


def written(folder, files):
    """The folder, with the text of each file."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def checkout(tmp_path):
    return written(tmp_path / "scx", FILES)


def run(path, out, **more):
    """Lines that the policy printed, and its run."""
    result = schedlab.run("mixed", str(path), cpus=4, topology="smt=2,llc=2", out=out, **more)
    (run,) = result.runs.to_dicts()
    lines = (out / "mixed" / run["policy"] / "seed-1" / "policy.log").read_text().splitlines()
    return [line.partition(" ")[2] for line in lines], run


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_a_scheduler_of_several_files(checkout, tmp_path, simulator, need, monkeypatch, compiler):
    monkeypatch.setenv("CC", need(compiler))
    lines, result = run(checkout / "scheds/rust/scx_own", tmp_path / "out")
    assert (result["policy"], result["error"], result["consistency"]) == ("scx_own", None, "ok")
    assert lines == [
        "answer 42 shared 7",
        "cpus 4 table 1 2",
        "page 0 word 0 full 1",
        # As BPF has it, where x86 raises a signal.
        "divided 0 100",
        "signed 0 -7",
        # NULL is the arena's first page, as on Linux.
        "null 33",
        "first page 44",
        "locked 0",
        # Each takes 512 bytes of 4,096.
        "records 8",
        "again 1",
    ]


SIZED = """
#include <scx/common.bpf.h>
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, u64);
} sized SEC(".maps");
struct inner {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 3);
	__type(value, u32);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 100);
	__type(key, u32);
	__array(values, struct inner);
} queues SEC(".maps");
"""
SIZED_INIT = """
s32 BPF_STRUCT_OPS_SLEEPABLE(own_init)
{
	const u32 last = 4, beyond = 5, first = 0;
	u32 value = 9;
	struct inner *queue = bpf_map_lookup_elem(&queues, &last);
	struct bpf_map *again = bpf_map_lookup_elem(&queues, &last);

	if (!queue || !again)
		return -ENOENT;
	bpf_printk("sized %d %d", !!bpf_map_lookup_elem(&sized, &last),
		   !!bpf_map_lookup_elem(&sized, &beyond));
	for (int i = 0; i < 4; i++)
		bpf_printk("push %ld", bpf_map_push_elem(queue, &value, 0));
	bpf_printk("pop %ld %u none %d", bpf_map_pop_elem(again, &value), value,
		   !bpf_map_lookup_elem(&queues, &first));
	return 0;
}
"""
SIZED_LAUNCH = """
#include <scx/launch.h>
static int launch(void)
{
	int err = sl_map_create_inner(SL_MAP(&queues), 4, BPF_MAP_TYPE_QUEUE, sizeof(u32), 3);

	bpf_printk("twice %d", sl_map_create_inner(SL_MAP(&queues), 4, BPF_MAP_TYPE_QUEUE, 4, 3));
	bpf_printk("beyond %d", sl_map_create_inner(SL_MAP(&queues), 100, BPF_MAP_TYPE_QUEUE, 4, 3));
	return err;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_maps_that_a_user_half_sizes_and_makes(tmp_path, simulator, need, monkeypatch, compiler):
    monkeypatch.setenv("CC", need(compiler))
    source = tmp_path / "scx" / "scheds" / "c" / "scx_own.bpf.c"
    (tmp_path / "scx" / "scheds" / "include").mkdir(parents=True)
    source.parent.mkdir()
    source.write_text(SIZED + POLICY + SIZED_INIT + "SCX_OPS_DEFINE(own_ops, " + OPS + ");\n")
    source.with_name("scx_own.launch.toml").write_text("[maps]\nsized = 5\n")
    source.with_name("scx_own.launch.c").write_text(SIZED_LAUNCH)
    lines, result = run(source, tmp_path / "out")
    assert (result["policy"], result["error"]) == ("scx_own", None)
    assert lines == ["twice -22", "beyond -22", "sized 1 0", *["push 0"] * 3, "push -7", "pop 0 9 none 1"]


CRATE = {
    "scx_own-1.1.4/Cargo.toml": '[package]\nname = "scx_own"\nversion = "1.1.4"\n'
    '[build-dependencies.scx_cargo]\nversion = "1.1.2"\n',
    "scx_own-1.1.4/build.rs": 'b.enable_skel("src/bpf/main.bpf.c", "bpf").add_source("src/bpf/lib/more.bpf.c");\n',
    "scx_own-1.1.4/src/bpf/lib/more.bpf.c": "#include <lib/more.h>\nint more(void) { return MORE; }\n",
    "scx_own-1.1.4/src/bpf/main.bpf.c": """
#include <scx/common.bpf.h>
#include <lib/more.h>
int more(void);
/* was_there is gone. */
const volatile u32 is_new;
const volatile u64 slice_ns;
s32 BPF_STRUCT_OPS_SLEEPABLE(own_init)
{
	bpf_printk("more %d new %u slice %llu", more(), is_new, slice_ns);
	return 0;
}
"""
    + POLICY
    + "SCX_OPS_DEFINE(own_ops, "
    + OPS
    + ");\n",
    "scx_own-1.1.4/src/bpf/scx_own.launch.toml": '[rodata]\nslice_ns = "3ms"\n"was_there?" = 1\n',
    "scx_own-1.1.4/src/bpf/scx_own.launch.c": """
#include <scx/launch.h>
static int launch(void)
{
#if SL_HAS(is_new)
	SL_SET(is_new, 8);
#endif
#if SL_HAS(was_there)
	SL_SET(was_there, 8);
#endif
	return 0;
}
""",
    # Not the lowest, and not the highest.
    "scx_utils-1.0.12/bpf_h/lib/more.h": "#define MORE 1\n",
    "scx_utils-1.1.3/bpf_h/lib/more.h": "#define MORE 2\n",
    "scx_cargo-1.2.0/bpf_h/lib/more.h": "#define MORE 3\n",
}


@pytest.fixture
def crate(tmp_path):
    return written(tmp_path / "registry", CRATE) / "scx_own-1.1.4"


def test_a_scheduler_that_cargo_has_unpacked(crate, tmp_path, simulator):
    lines, result = run(crate, tmp_path / "out")
    assert (result["policy"], result["error"], result["consistency"]) == ("scx_own", None, "ok")
    assert lines == ["more 2 new 8 slice 3000000"]


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("../scx_utils-1.1.3", None, None),
        ("../scx_cargo-1.2.0", None, "cargo info scx_cargo@1.1.2"),
        ("src/bpf/lib/more.bpf.c", None, "names more.bpf.c, which is in none of its folders"),
        ("Cargo.toml", "[package]", "names no version of scx_cargo or scx_utils"),
        ("src/bpf/scx_own.launch.toml", "[rodata]\nwas_there = 1", "has no number of that name"),
    ],
)
def test_what_a_crate_lacks(crate, simulator, file, text, reason):
    place = crate / file
    if text:
        place.write_text(text)
    elif place.is_dir():
        shutil.rmtree(place)
        if reason:
            shutil.rmtree(crate.parent / "scx_utils-1.1.3")
    else:
        place.unlink()
    if reason is None:
        build_policy(load_policy(str(crate)))
        return
    with pytest.raises(PolicyError, match=reason):
        build_policy(load_policy(str(crate)))


def test_a_launch_file_of_a_version(crate, monkeypatch, tmp_path):
    main = crate / "src/bpf/main.bpf.c"
    folder = tmp_path / "policies" / "launch"
    folder.mkdir(parents=True)
    monkeypatch.setattr("schedlab.policy.launch_file.policies_folder", lambda: folder.parent)
    assert launch_file("scx_own", main) == main.parent / "scx_own.launch.toml"
    (main.parent / "scx_own.launch.toml").unlink()
    assert launch_file("scx_own", main) is None
    for name in ("scx_own", "scx_own-1.0", "scx_own-1.1"):
        (folder / f"{name}.launch.toml").touch()
    assert launch_file("scx_own", main) == folder / "scx_own-1.1.launch.toml"
    (folder / "scx_own-1.1.launch.toml").unlink()
    assert launch_file("scx_own", main) == folder / "scx_own.launch.toml"


def test_a_user_half_for_another_version_says_so(crate, monkeypatch, tmp_path, simulator):
    code = crate / "src/bpf/scx_own.launch.c"
    folder = tmp_path / "policies" / "launch"
    folder.mkdir(parents=True)
    (folder / "scx_own.launch.c").write_text(code.read_text().replace("SL_HAS(was_there)", "1"))
    code.unlink()
    monkeypatch.setattr("schedlab.policy.launch_file.policies_folder", lambda: folder.parent)
    with pytest.raises(
        PolicyError, match=r"scx_own.launch.c is for another version of scx_own than this one \(1.1.4\)"
    ):
        build_policy(load_policy(str(crate)))


def test_a_main_file_that_a_crate_writes(checkout, tmp_path, monkeypatch):
    """As cargo leaves it: two schedulers have one crate, and each is called by its own folder."""
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "cargo"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folders = [checkout / "scheds" / "rust" / name for name in ("scx_one", "scx_two")]
    for folder in folders:
        folder.mkdir()
        (folder / "build.rs").write_text("scx_rustland_core::RustLandBuilder::new().build();\n")
        (folder / "Cargo.toml").write_text(
            'scx_rustland_core = { path = "../../../rust/scx_rustland_core", version = "1.2.3" }\n'
        )
    with pytest.raises(NotFoundError, match="is in the crate scx_rustland_core 1.2.3, which is not here"):
        load_policy(str(folders[0]))
    crate = tmp_path / "cargo" / "registry" / "src" / "index" / "scx_rustland_core-1.2.3" / "assets" / "bpf"
    crate.mkdir(parents=True)
    (crate / "main.bpf.c").write_text('#include "intf.h"\n' + SMALL)
    (crate / "intf.h").write_text("#include <lib/own.h>\n")
    policies = [load_policy(str(folder)) for folder in folders]
    assert [policy.name for policy in policies] == ["scx_one", "scx_two"]
    assert build_policy(policies[0]).shared_object.is_file()


def test_each_of_its_files_decides_its_hash(checkout):
    folder = str(checkout / "scheds/rust/scx_own")
    hashes = {load_policy(folder).content_hash}
    for name in FILES:
        if name.endswith((".h", ".c", ".rs")):
            path = checkout / name
            path.write_text(path.read_text() + "\n")
            hashes.add(load_policy(folder).content_hash)
    # All but a header that no file of the scheduler includes.
    assert len(hashes) == 1 + len([name for name in FILES if name.endswith((".h", ".c", ".rs"))])


def test_a_folder_of_ones_own(tmp_path, simulator):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "main.bpf.c").write_text(
        "#include <scx/common.bpf.h>\nint other(void);\n"
        + POLICY
        + "s32 BPF_STRUCT_OPS_SLEEPABLE(own_init)\n"
        '{\n\tbpf_printk("other %d", other());\n\treturn 0;\n}\nSCX_OPS_DEFINE(own_ops, ' + OPS + ");\n"
    )
    (folder / "second.bpf.c").write_text("int other(void) { return 5; }\n")
    lines, result = run(folder, tmp_path / "out")
    assert (result["policy"], result["error"], lines) == ("mine", None, ["other 5"])


def test_an_object_of_bpf_is_refused_where_linux_is_not(tmp_path):
    (tmp_path / "mine.bpf.o").write_bytes(b"\x7fELF")
    policy = load_policy(str(tmp_path / "mine.bpf.o"))
    assert policy.name == "mine"
    with pytest.raises(PolicyError, match="--host guest runs it"):
        build_policy(policy)


def test_a_folder_without_a_scheduler_is_refused(tmp_path):
    assert main_file(tmp_path) is None
    with pytest.raises(NotFoundError, match="is a folder without main.bpf.c"):
        load_policy(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("header", "is_first"),
    [
        ("", True),
        ("u32 scx_bpf_reenqueue_local(void) __ksym;", True),
        ("void scx_bpf_reenqueue_local___v2___compat(void) __ksym __weak;", False),
    ],
)
def test_a_scheduler_calls_the_form_that_its_headers_know(header, is_first, tmp_path):
    (tmp_path / "scx").mkdir()
    (tmp_path / "scx" / "compat.bpf.h").write_text(header)
    flags = flags_of(Published(includes=(tmp_path,), is_published=True))
    assert ("-Dscx_bpf_reenqueue_local=scx_bpf_reenqueue_local___v1" in flags) is is_first
    assert flags_of(Published(includes=(tmp_path,))) == ()
