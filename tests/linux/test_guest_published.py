# SPDX-License-Identifier: MIT
"""A published scheduler of several files is compiled, linked and loaded as its user half would."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import schedlab
from schedlab.errors import PolicyError
from schedlab.hosts.guest import build as guest_build
from schedlab.hosts.guest import policies as guest
from schedlab.hosts.guest.frames import Answer, read_frames
from schedlab.hosts.user_half import image_of
from schedlab.policy import bpf
from schedlab.policy.build import build_policy
from schedlab.policy.find import load_policy
from schedlab.policy.published import main_file
from schedlab.program.compiler import compile_workload
from schedlab.records.file import Kind, read_records
from schedlab.workload.find import load_workload

BUILD = """
.enable_skel("src/bpf/main.bpf.c", "bpf")
.add_source("src/bpf/other.bpf.c")
"""
MAIN = """
#include <own/own.h>
#include <errno.h>
char _license[] SEC("license") = "GPL";
const volatile u64 __SCX_ENQ_HEAD __weak;
const volatile u64 __SCX_NO_SUCH_NAME __weak;
const volatile u32 given;
extern unsigned long CONFIG_NR_CPUS __kconfig;
extern unsigned CONFIG_HZ __kconfig;
extern bool CONFIG_PREEMPT_RCU __kconfig __weak;
int RESIZABLE_ARRAY(data, each);
int called;
char comm[] = "ksoftirqd/0";
static const int not_there = ENOENT;

SEC("syscall")
int prepare(s32 *input)
{
	called = *input;
	return 0;
}

SEC("struct_ops.s/own_init")
s32 BPF_PROG(own_init)
{
	/* The verifier knows how many there are. */
	((volatile int *)each)[1] = 1;
	if (__SCX_ENQ_HEAD != SCX_ENQ_HEAD || __SCX_NO_SUCH_NAME || given != 3)
		return -7;
	/* Without a C library's functions such a comparison is a call. */
	if (__builtin_memcmp(comm, "ksoftirqd/", 10))
		return -5;
	if (scx_bpf_nr_cpu_ids() != 2 || not_there != 2)
		return -6;
	if (CONFIG_HZ != 250 || CONFIG_NR_CPUS < 2 || !CONFIG_PREEMPT_RCU)
		return -9;
	return other_file(called) == 8 ? 0 : -8;
}

SEC(".struct_ops.link")
struct sched_ext_ops own = { .init = (void *)own_init, .name = "own" };
"""
OTHER = """
#include <own/own.h>
char _license[] SEC("license") = "GPL";

__attribute__((noinline)) int other_file(int value)
{
	return value + (scx_bpf_nr_cpu_ids() == 2);
}
"""
HEADER = """
#include <vmlinux.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#define RESIZABLE_ARRAY(section, name) name[1] SEC("." #section "." #name)
int other_file(int value);
u32 scx_bpf_nr_cpu_ids(void) __ksym;
"""
#: A kernel has no flag without a callback that it is about.
ENQ_LAST = 1 << 1


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler in a checkout that has nothing else."""
    folder = tmp_path / "scheds" / "rust" / "scx_own"
    include = tmp_path / "scheds" / "include" / "own"
    stubs = include.with_name("bpf-compat") / "gnu"
    for place in (folder / "src" / "bpf", include, stubs):
        place.mkdir(parents=True)
    (stubs / "stubs.h").touch()
    (folder / "build.rs").write_text(BUILD)
    (folder / "src" / "bpf" / "main.bpf.c").write_text(MAIN)
    (folder / "src" / "bpf" / "other.bpf.c").write_text(OTHER)
    (include / "own.h").write_text(HEADER)
    return main_file(folder)


def test_what_its_user_half_sets_is_set(guest_parts, scheduler):
    """Numbers of the kernel's names, its configuration, arrays of a CPU each, constants, calls and flags."""
    made = bpf.compile_object(scheduler, toolchain=guest_build.toolchain).read_bytes()
    sets = {"given": 3, "call.0.prepare": 7}
    ran, uncalled, unset, flags, absent = guest.run_guest(
        [
            guest.GuestTask("ran", made, knobs=sets),
            guest.GuestTask("uncalled", made, knobs={"given": 3}),
            guest.GuestTask("unset", made, knobs={"call.0.prepare": 7}),
            guest.GuestTask("flags", made, knobs=sets | {"ops.flags": ENQ_LAST}),
            guest.GuestTask("absent", made, knobs=sets | {"call.1.repair": 0}),
        ],
        cpus=2,
    )
    assert ran.is_loaded and not ran.error, ran.refusal
    assert "(-8)" in uncalled.error or "Exec format" in uncalled.error, uncalled.error
    assert "(-7)" in unset.error or "Argument list" in unset.error, unset.error
    assert "SCX_OPS_ENQ_LAST requires ops.enqueue()" in flags.error
    assert "it has no program repair to call" in absent.error


def test_an_error_names_its_file_and_line(guest_parts, scheduler):
    scheduler.write_text(MAIN.replace("called = *input;", "called = *absent;"))
    with pytest.raises(PolicyError, match=rf"{scheduler}:19:\d+: error: .*absent"):
        bpf.compile_object(scheduler, toolchain=guest_build.toolchain)


FILLED = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
struct big { u8 bytes[600]; };
const volatile u32 given, nr;
const volatile s32 table[4];
struct big sparse;
static volatile u64 local = 1;
#define MAP(of, size, key_type, value_type) \\
	__uint(type, of); __uint(max_entries, size); __type(key, key_type); __type(value, value_type)
struct { MAP(BPF_MAP_TYPE_ARRAY, 3, u32, u64); } array SEC(".maps");
struct { MAP(BPF_MAP_TYPE_PERCPU_ARRAY, 2, u32, u32); } percpu SEC(".maps");
struct { MAP(BPF_MAP_TYPE_HASH, 8, u64, u32); } hash SEC(".maps");
struct { MAP(BPF_MAP_TYPE_ARRAY, 1, u32, u64); } untouched SEC(".maps");
struct queue {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 3);
	__type(value, u32);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 5);
	__type(key, u32);
	__array(values, struct queue);
} queues SEC(".maps");

static u64 at(void *map, u32 key)
{
	u64 *value = bpf_map_lookup_elem(map, &key);

	return value ? *value : -1;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(mine_init)
{
	const u64 long_key = 1ULL << 40, deleted = 2;
	const u32 one = 1;
	u32 *last = bpf_map_lookup_percpu_elem(&percpu, &one, 1);
	u32 *found = bpf_map_lookup_elem(&hash, &long_key);
	struct queue *queue = bpf_map_lookup_elem(&queues, &one);

	if (given != 3 || nr != scx_bpf_nr_cpu_ids() || table[2] != -2 || local != 5)
		return -7;
	if (sparse.bytes[1] != 1 || sparse.bytes[599] != 2 || sparse.bytes[300])
		return -8;
	if (at(&array, 0) || at(&array, 2) != 1ULL << 50 || at(&untouched, 0))
		return -9;
	if (!last || *last != 21 || !found || *found != 9 || bpf_map_lookup_elem(&hash, &deleted))
		return -10;
	if (!queue || bpf_map_push_elem(queue, &one, 0))
		return -11;
	return 0;
}

void BPF_STRUCT_OPS(mine_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}
SCX_OPS_DEFINE(mine_ops, .enqueue = (void *)mine_enqueue, .init = (void *)mine_init, .name = "mine");
"""
FILLING = """
#include <scx/launch.h>
static int launch(void)
{
	const u64 long_key = 1ULL << 40, deleted = 2;
	const u32 one = 1, two = 2, nine = 9;
	const u64 value = 1ULL << 50;

	SL_SET(nr, scx_bpf_nr_cpu_ids());
	SL_SET(table[2], -2);
	local += 4;
	sparse.bytes[1] = 1;
	sparse.bytes[599] = 2;
	bpf_map_update_elem(&array, &two, &value, 0);
	for (u32 cpu = 0; cpu < nr; cpu++)
		*(u32 *)bpf_map_lookup_percpu_elem(&percpu, &one, cpu) = 20 + cpu;
	bpf_map_update_elem(&hash, &long_key, &nine, 0);
	bpf_map_update_elem(&hash, &deleted, &nine, 0);
	bpf_map_delete_elem(&hash, &deleted);
	sl_map_create_inner(SL_MAP(&queues), 1, BPF_MAP_TYPE_QUEUE, sizeof(u32), 3);
	return nr == 2 ? 0 : -22;
}
"""


@pytest.fixture
def launched(tmp_path):
    """Run a policy whose user half is in C in the guest; its error."""
    source = tmp_path / "mine.bpf.c"

    def run(launch, *, policy=FILLED, cpus=2):
        source.write_text(policy)
        source.with_name("mine.launch.toml").write_text("[rodata]\ngiven = 3\n")
        source.with_name("mine.launch.c").write_text(launch)
        out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        (run,) = schedlab.run("mixed", str(source), host="guest", cpus=cpus, out=out).runs.to_dicts()
        return run["error"]

    return run


def test_what_its_user_half_in_c_writes_is_there(guest_parts, simulator, launched):
    """Constants, data, and entries of maps, on a machine of as many CPUs; what is its own stays here."""
    own = FILLING.replace("static int launch", "static volatile u32 own;\nstatic int launch")
    assert launched(own.replace("local +=", "own = 1, local +=")) is None
    assert "-11" in launched(FILLING.replace("(&queues), 1", "(&queues), 2"))


def test_schedlab_load_gives_the_kernel_the_same(guest_parts, simulator, tmp_path):
    """The loader of this machine's own kernel, in the guest's."""
    source, program = tmp_path / "mine.bpf.c", tmp_path / "program"
    source.write_text(FILLED)
    source.with_name("mine.launch.c").write_text(FILLING)
    program.write_bytes(compile_workload(load_workload("mixed"), seed=1).data)
    built = build_policy(load_policy(str(source)), engine="bpf", toolchain=guest_build.toolchain)
    image = image_of(built, ["--program", str(program), "--cpus", "2", "--set", "given=3"])
    loader = guest_build.build_program("load", guest_parts.libbpf).read_bytes()
    words = ("/load", "POLICY", "--set", "given=3", "--every-ms", "40")
    tasks = [
        guest.GuestTask(name, built.shared_object.read_bytes(), command=(*words, *more), hold_ms=100)
        for name, more in (("with", ("--image", "/image")), ("without", ()))
    ]
    answers = guest.run_guest(tasks, cpus=2, files={"/load": loader, "/image": image})
    with_it, without = (Answer(each.name) for each in answers)
    for answer, each in zip((with_it, without), answers, strict=True):
        answer.read(read_frames(each.output))
    assert with_it.ended_by == "by us" and not with_it.error, with_it.error
    assert without.error and "ops.init() failed (-7)" in without.error


def test_a_policy_with_much_data_has_memory(guest_parts, simulator, launched):
    """The loader has it, then the kernel, and one copy on the way.

    On one CPU, whose times do not depend on what else this machine does: late arrivals are an error.
    """
    size = 170 << 20
    policy = FILLED.replace("600", str(size)).replace("599", str(size - 1))
    policy = policy.replace("&percpu, &one, 1", "&percpu, &one, 0").replace("!= 21", "!= 20")
    launch = FILLING.replace("599", str(size - 1)).replace("nr == 2", "nr == 1")
    assert launched(launch, policy=policy, cpus=1) is None


ARENA_HEADERS = {
    "scx/common.bpf.h": "#include <vmlinux.h>\n#include <bpf/bpf_helpers.h>\n#include <bpf/bpf_tracing.h>\n",
    "bpf_arena_common.bpf.h": """
#define __arena __attribute__((address_space(1)))
void __arena *bpf_arena_alloc_pages(void *, void __arena *, __u32, int, __u64) __ksym __weak;
""",
}
ARENA = """
#include <scx/common.bpf.h>
#include <bpf_arena_common.bpf.h>
char _license[] SEC("license") = "GPL";
struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 16);
} arena SEC(".maps");
struct cell { u64 value; struct cell __arena *next; atomic_t count; };
struct cell __arena *first;
struct take_args { u64 value, at; };

SEC("syscall") int take(struct take_args *args)
{
	struct cell __arena *c = bpf_arena_alloc_pages(&arena, 0, 1, -1, 0);

	if (!c)
		return -12;
	c->value = args->value;
	c->next = first;
	first = c;
	args->at = (u64)c;
	return 0;
}

SEC("struct_ops.s/mine_init")
s32 BPF_PROG(mine_init)
{
	struct cell __arena *c = first;

	/* By which the verifier knows what it has pointers into. */
	asm volatile("" : : "r"(&arena));
	if (!c || c->value != 7 || !c->next || c->next->value != 1 || c->next->next != c)
		return -7;
	/* clang casts the address of what may be elsewhere in another kernel wrongly. */
	return __sync_val_compare_and_swap(&c->count.counter, 0, 1) ? -8 : 0;
}

SEC(".struct_ops.link")
struct sched_ext_ops mine_ops = { .init = (void *)mine_init, .name = "mine" };
"""
TAKING = """
#include <scx/launch.h>
static int launch(void)
{
	struct take_args one = { .value = 1 }, two = { .value = 2 };
	int err = SL_CALL(take, &one, sizeof(one));

	if (!err)
		err = SL_CALL(take, &two, sizeof(two));
	((struct cell *)two.at)->value = ((struct cell *)one.at)->value + 6;
	((struct cell *)one.at)->next = (struct cell *)two.at;
	return err;
}
"""


def test_what_its_user_half_has_in_an_arena_is_there(guest_parts, simulator, tmp_path):
    """Programs are called there, and addresses are the kernel's."""
    source = tmp_path / "scheds" / "c" / "scx_mine.bpf.c"
    for name, text in ARENA_HEADERS.items():
        header = tmp_path / "scheds" / "include" / name
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(text)
    source.parent.mkdir()
    source.with_name("scx_mine.launch.c").write_text(TAKING)

    def run(policy):
        source.write_text(policy)
        return schedlab.run("mixed", str(source), host="guest", cpus=1, out=tmp_path / "out").runs["error"][0]

    assert run(ARENA) is None
    elsewhere = ARENA.replace("(u64)c;", "(u64)c;\n\targs->value = bpf_get_prandom_u32();")
    assert re.search(
        r"its program take answers 0x[0-9a-f]+, and 0x[0-9a-f]+ in the simulator", run(elsewhere)
    )


OTHERWISE = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
#define MAP(of, size, key_type, value_type) \\
	__uint(type, of); __uint(max_entries, size); __type(key, key_type); __type(value, value_type)
struct wrapper { struct bpf_cpumask __kptr *mask; };
struct box { struct bpf_timer timer; };
struct { MAP(BPF_MAP_TYPE_HASH, 8, u64, struct wrapper); } masks SEC(".maps");
struct { MAP(BPF_MAP_TYPE_ARRAY, 1, u32, struct box); } boxes SEC(".maps");
static int kept, cancelled = 1;
const u32 zero = 0;

static int add(u64 key)
{
	struct wrapper empty = {}, *w;
	struct bpf_cpumask *mask = bpf_cpumask_create();

	if (!mask)
		return 0;
	bpf_map_update_elem(&masks, &key, &empty, 0);
	w = bpf_map_lookup_elem(&masks, &key);
	if (w)
		mask = bpf_kptr_xchg(&w->mask, mask);
	if (!mask)
		return 0;
	bpf_cpumask_release(mask);
	return 1;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(mine_init)
{
	struct box *b = bpf_map_lookup_elem(&boxes, &zero);
	u64 key = 1;

	add(key);
	bpf_map_delete_elem(&masks, &key);
	kept = add(2);
	return b ? bpf_timer_init(&b->timer, &boxes, CLOCK_MONOTONIC) : 0;
}

s32 BPF_STRUCT_OPS(mine_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct box *b = bpf_map_lookup_elem(&boxes, &zero);

	if (b)
		cancelled = bpf_timer_cancel(&b->timer);
	return prev_cpu;
}

void BPF_STRUCT_OPS(mine_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
	if (cancelled <= 0)
		scx_bpf_error("kept %d, cancelled %d", kept, cancelled);
}
SCX_OPS_DEFINE(mine_ops, .enqueue = (void *)mine_enqueue, .select_cpu = (void *)mine_select_cpu,
	       .init = (void *)mine_init, .name = "mine");
"""


def test_what_linux_7_2_does_otherwise(guest_parts, simulator, tmp_path):
    """An entry keeps its pointer when it is deleted, and no timer is cancelled where interrupts are off.

    scx_rusty and scx_nest end by these, which were written for earlier kernels.
    """
    source = tmp_path / "mine.bpf.c"
    source.write_text(OTHERWISE)

    def run(host):
        return schedlab.run("mixed", str(source), host=host, cpus=2, out=tmp_path / host).runs["error"][0]

    assert "kept 1, cancelled -95" in run("guest")
    assert "kept 0, cancelled -95" in run("sim")


def test_a_user_half_in_c_that_no_kernel_can_have(guest_parts, simulator, launched):
    """That a scheduler goes without would be seen by no one."""
    assert "its launch() returned" in launched(FILLING, cpus=1)
    policy = FILLED.replace("} queues SEC", '} queues SEC(".maps");\nstruct queue queued SEC')
    pushing = FILLING.replace("SL_SET(nr,", "bpf_map_push_elem(&queued, &nine, 0);\n\tSL_SET(nr,")
    assert "it fills queued" in launched(pushing, policy=policy)
    assert "only the simulator" in launched(FILLING + "SL_USER_HALF(1000) { }\n")


ONE = '[workload]\ntitle = "t"\nquestion = "q"\n[[task]]\nname = "a"\nphases = [{run = "1ms"}]\n'
LARGE = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
char table[32 << 20];
void BPF_STRUCT_OPS(large_enqueue, struct task_struct *p, u64 enq_flags)
{
	table[(u32)p->pid % sizeof(table)]++;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}
SCX_OPS_DEFINE(large_ops, .enqueue = (void *)large_enqueue, .name = "large");
"""


def test_a_task_does_not_pay_for_the_memory_of_its_policy(guest_parts, tmp_path):
    """It would take 2 ms of CPU time to unmap 32 MB as it ends."""
    (tmp_path / "large.bpf.c").write_text(LARGE)
    (tmp_path / "one.toml").write_text(ONE)
    words = (str(tmp_path / "one.toml"), str(tmp_path / "large.bpf.c"))
    (run,) = schedlab.run(*words, host="guest", cpus=1, out=tmp_path / "out").runs.to_dicts()
    assert run["error"] is None
    events = read_records(Path(run["directory"]) / "records.slr").events
    assert events["arg"][events["kind"] == Kind.STOP].sum() < 2_000_000
