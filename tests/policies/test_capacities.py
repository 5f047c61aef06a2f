# SPDX-License-Identifier: MIT
"""What user halves tell their schedulers of CPUs of different capacity: the tables, worked out by hand.

The policies here are small ones with the names of the published ones' tables; test_upstream.py runs those on such a machine.
"""

from __future__ import annotations

import pytest

import schedlab

POLICY = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
%s
s32 BPF_STRUCT_OPS_SLEEPABLE(own_init)
{
	%s
	return 0;
}
void BPF_STRUCT_OPS(own_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, enq_flags);
}
SCX_OPS_DEFINE(own_ops, .enqueue = (void *)own_enqueue, .init = (void *)own_init, .name = "own");
"""
#: Type and place in the order of each CPU, and whether there are little ones.
TYPES = """
#include "core_types.h"
u32 capacity[8], types[8], ranks[8];
static int launch(void)
{
	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++) {
		capacity[cpu] = launch_capacity(cpu);
		types[cpu] = launch_core_type(cpu);
		ranks[cpu] = launch_rank(cpu);
	}
	has_little = launch_has_little_cores();
	return 0;
}
"""
LAVD = """
enum { LAVD_CPU_ID_MAX = 512, LAVD_CPDOM_MAX_NR = 128, LAVD_CPDOM_MAX_DIST = 3, LAVD_PCO_STATE_MAX = 11 };
struct cpdom_ctx {
	u64 id, alt_id;
	u8 numa_id, llc_id, is_big, is_valid, nr_neighbors[LAVD_CPDOM_MAX_DIST];
	u64 __cpumask[LAVD_CPU_ID_MAX / 64];
	u8 neighbor_ids[LAVD_CPDOM_MAX_DIST * LAVD_CPDOM_MAX_NR];
} cpdom_ctxs[LAVD_CPDOM_MAX_NR];
const volatile u8 preempt_shift, nr_pco_states, cpu_big[LAVD_CPU_ID_MAX], cpu_turbo[LAVD_CPU_ID_MAX];
const volatile u32 pco_bounds[LAVD_PCO_STATE_MAX], cpu_sibling[LAVD_CPU_ID_MAX], nr_cpu_ids;
const volatile u16 pco_nr_primary[LAVD_PCO_STATE_MAX], cpu_capacity[LAVD_CPU_ID_MAX];
const volatile u16 pco_table[LAVD_PCO_STATE_MAX][LAVD_CPU_ID_MAX];
const volatile bool is_smt_active, is_autopilot_on;
const volatile u64 nr_llcs, slice_max_ns, slice_min_ns;
"""
SHOWN_OF_LAVD = """
	u32 i, k, d;

	bpf_for(i, 0, nr_cpu_ids)
		bpf_printk("cpu %u %u %u", cpu_capacity[i], cpu_big[i], cpu_turbo[i]);
	bpf_for(i, 0, nr_pco_states) {
		bpf_printk("state %u", pco_bounds[i]);
		bpf_for(k, 0, nr_cpu_ids)
			bpf_printk("order %u", pco_table[i][k]);
	}
	for (i = 0; i < 8 && cpdom_ctxs[i].is_valid; i++) {
		struct cpdom_ctx *c = &cpdom_ctxs[i];

		bpf_printk("domain %llu %u %u %llu", c->alt_id, c->llc_id, c->is_big, c->__cpumask[0]);
		for (d = 0; d < 3; d++) {
			for (k = 0; k < c->nr_neighbors[d]; k++)
				bpf_printk("near %u %u", d, c->neighbor_ids[d * LAVD_CPDOM_MAX_NR + k]);
		}
	}
"""


@pytest.fixture
def printed(tmp_path, simulator, root):
    """Function that runs a policy with a user half on a machine; what its init printed, a list per line."""

    def run(names, shown, launch, cpus, capacity, **machine):
        source = tmp_path / "scx_own.bpf.c"
        source.write_text(POLICY % (names, shown))
        for header in (root / "policies" / "launch").glob("*.h"):
            (tmp_path / header.name).write_text(header.read_text())
        source.with_name("scx_own.launch.c").write_text(launch)
        out = tmp_path / "out"
        result = schedlab.run("mixed", str(source), seeds=1, cpus=cpus, capacity=capacity, out=out, **machine)
        (run,) = result.runs.to_dicts()
        if run["error"]:
            return run["error"]
        lines = (out / "mixed/scx_own/seed-1/policy.log").read_text().splitlines()
        words = [line.split()[1:] for line in lines]
        return [[each[0], *map(int, each[1:])] for each in words]

    return run


@pytest.mark.parametrize(
    ("capacity", "normalised", "types", "ranks"),
    [
        ("", [1024] * 4, [1] * 4, [0, 1, 2, 3]),
        # The average is 768: the first two are turbo, and 1024 is 1.3 times 512.
        ("2-3=512", [1024, 1024, 512, 512], [2, 2, 0, 0], [0, 1, 2, 3]),
        ("0-1=512", [512, 512, 1024, 1024], [0, 0, 2, 2], [2, 3, 0, 1]),
        # 1024 is less than 1.3 times 800, so the others are no little ones.
        ("0-2=800", [800, 800, 800, 1024], [1, 1, 1, 2], [1, 2, 3, 0]),
        # Of three kinds those in the middle are above the average of 736.
        ("1-2=800,3-3=320", [1024, 800, 800, 320], [2, 1, 1, 0], [0, 1, 2, 3]),
        # The fastest is 1024, whatever it is called.
        ("0-1=500,2-3=250", [1024, 1024, 512, 512], [2, 2, 0, 0], [0, 1, 2, 3]),
    ],
)
def test_types_and_order_of_cpus(printed, capacity, normalised, types, ranks):
    shown = """
	u32 i;

	bpf_for(i, 0, 4)
		bpf_printk("cpu %u %u %u", capacity[i], types[i], ranks[i]);
	bpf_printk("little %u", has_little);"""
    names = "extern u32 capacity[8], types[8], ranks[8];\nbool has_little;"
    *cpus, little = printed(names, shown, TYPES, 4, capacity)
    assert [line[1:] for line in cpus] == [list(each) for each in zip(normalised, types, ranks, strict=True)]
    assert little == ["little", int(0 in types)]


def test_order_and_domains_of_lavd(printed, root):
    """Cores of two CPUs, caches of four: in the first cache the second core is little, in the second cache both are."""
    launch = (root / "policies" / "launch" / "scx_lavd.launch.c").read_text()
    launch = launch.replace("SL_HAS(neighbor_ids)", "1")
    lines = printed(LAVD, SHOWN_OF_LAVD, launch, 8, "2-7=512", topology="smt=2,llc=4")
    cpus = [line[1:] for line in lines if line[0] == "cpu"]
    assert cpus == [[1024, 1, 1]] * 2 + [[512, 0, 0]] * 6
    rest = [line for line in lines if line[0] in ("state", "order")]
    # For power the little ones of a cache first, core by core, and its capacity is the first one's;
    # for performance the first CPU of each core, cache by cache, the fast one first.
    assert rest == [
        *[["state", 512], *(["order", cpu] for cpu in (2, 3, 0, 1, 4, 5, 6, 7))],
        *[["state", 2 * 1024 + 6 * 512], *(["order", cpu] for cpu in (0, 2, 4, 6, 1, 3, 5, 7))],
    ]
    # Domains in that order: CPUs 0-1, 2-3, 4-7. Of the other type is the one in the same cache, or else the next.
    domains = [line[1:] for line in lines if line[0] == "domain"]
    assert domains == [[1, 0, 1, 0b11], [0, 0, 0, 0b1100], [0, 1, 0, 0b11110000]]
    near = [line[1:] for line in lines if line[0] == "near"]
    # By distance: domain 0 has 1 (other type), 2 (and another cache); 1 has 2 (another cache), 0; 2 has 1, 0.
    assert near == [[0, 1], [1, 2], [0, 2], [1, 0], [0, 1], [1, 0]]


def test_a_machine_that_lavd_finds_too_complex(printed, root):
    """Two nodes of two caches, both with two types of CPUs: five distances, and there is room for three."""
    launch = (root / "policies" / "launch" / "scx_lavd.launch.c").read_text()
    capacity = ",".join(f"{cpu}-{cpu}=512" for cpu in range(1, 8, 2))
    said = printed(
        LAVD, SHOWN_OF_LAVD, launch.replace("SL_HAS(neighbor_ids)", "1"), 8, capacity, topology="llc=2,node=4"
    )
    assert "scx_lavd takes at most 3 distances between domains" in said
