# SPDX-License-Identifier: MIT
"""What of a scheduler's user half runs beside it: a loop that decides, a thread, and the ring buffers between them."""

from __future__ import annotations

import pytest

import schedlab
from policies.test_published import SMALL

IN_USER_SPACE = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
const volatile s32 user_pid;
volatile u32 is_needed;
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 64);
	__type(value, s32);
} to_user SEC(".maps"), from_user SEC(".maps");
void BPF_STRUCT_OPS(own_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 pid = p->pid;

	if (pid == user_pid)
		return;
	bpf_map_push_elem(&to_user, &pid, 0);
	is_needed = 1;
}
static void insert(s32 pid)
{
	struct task_struct *p = bpf_task_from_pid(pid);

	if (!p)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, SCX_SLICE_DFL, 0);
	bpf_task_release(p);
}
void BPF_STRUCT_OPS(own_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 pid;

	if (is_needed) {
		is_needed = 0;
		insert(user_pid);
	}
	while (!bpf_map_pop_elem(&from_user, &pid))
		insert(pid);
}
SCX_OPS_DEFINE(own_ops, .enqueue = (void *)own_enqueue, .dispatch = (void *)own_dispatch, .name = "own");
"""
USER_HALF = """
#include <scx/launch.h>
static u32 nr_rounds;
static int launch(void)
{
	SL_SET(user_pid, sl_scx_user_half_pid());
	return 0;
}
SL_USER_HALF(50000)
{
	s32 pid;

	while (!bpf_map_pop_elem(&to_user, &pid))
		bpf_map_push_elem(&from_user, &pid, 0);
	bpf_printk("round %u", ++nr_rounds);
}
"""
TWO_TASKS = """
[workload]
title = "Two tasks in turn"
question = "How long does a decision take?"
jitter = "0ms"
[[task]]
name = "t"
count = 2
phases = [{loop = 10, do = [{run = "1ms"}, {sleep = "3ms"}]}]
"""


def test_a_user_half_decides_on_a_cpu_of_the_machine(tmp_path, simulator):
    """It is a task for the policy, and overhead for whoever compares."""
    source = tmp_path / "scx_own.bpf.c"
    source.write_text(IN_USER_SPACE)
    source.with_name("scx_own.launch.c").write_text(USER_HALF)
    (tmp_path / "two.toml").write_text(TWO_TASKS)
    workload = str(tmp_path / "two.toml")
    result = schedlab.run(workload, str(source), cpus=1, tick="1ms", out=tmp_path / "out")
    (run,) = result.runs.to_dicts()
    assert (run["error"], run["consistency"]) == (None, "ok")
    log = (tmp_path / "out/two/scx_own/seed-1/policy.log").read_text().splitlines()
    assert result.tasks["task"].to_list() == [1, 2]
    assert run["overhead_ns"] == 50_000 * len(log)
    assert len(log) >= 10
    # Nothing else has the CPU when the first task arrives: it waits for the decision.
    assert result.tasks["response_ns"].min() == 50_000
    (refused,) = schedlab.run(workload, str(source), host="uthreads", out=tmp_path / "ut").runs.to_dicts()
    assert "which only the simulator has" in refused["error"]


UPTIME_NS = 3600 * 10**9  # of the machine as a run begins (S34)
THREAD = """
#include <scx/launch.h>
static volatile u32 nr_rounds;
static int launch(void) { return 0; }
SL_USER_THREAD(10000000, 250000)
{
	nr_rounds = nr_rounds + 1;
	bpf_printk("round %u at %llu", nr_rounds, bpf_ktime_get_ns());
}
"""
SLEEPERS = """
[workload]
title = "Tasks that sleep"
question = "What happens while all tasks sleep?"
jitter = "0ms"
[[task]]
name = "t"
count = 2
phases = [{run = "1ms"}, {sleep = "30ms"}, {run = "1ms"}]
"""


def test_a_thread_of_a_user_half(tmp_path, simulator):
    """It wakes up while all else sleeps; it is overhead, and without it all is as it was."""
    source = tmp_path / "scx_own.bpf.c"
    source.write_text(SMALL)
    (tmp_path / "two.toml").write_text(SLEEPERS)
    workload = str(tmp_path / "two.toml")
    without = schedlab.run(workload, str(source), cpus=2, tick="1ms", out=tmp_path / "without")
    source.with_name("scx_own.launch.c").write_text(THREAD)
    result = schedlab.run(workload, str(source), cpus=2, tick="1ms", out=tmp_path / "out")
    (run,) = result.runs.to_dicts()
    assert (run["error"], run["consistency"]) == (None, "ok")
    log = (tmp_path / "out/two/scx_own/seed-1/policy.log").read_text().splitlines()
    # The period begins when the round before is over.
    assert [line.split(" ", 1)[1] for line in log] == [
        f"round {i} at {UPTIME_NS + i * 10_250_000}" for i in (1, 2, 3)
    ]
    assert run["overhead_ns"] == 3 * 250_000
    assert result.tasks["task"].to_list() == [1, 2]
    assert result.tasks["end_ns"].to_list() == without.tasks["end_ns"].to_list()
    (other,) = schedlab.run(workload, str(source), host="uthreads", out=tmp_path / "ut").runs.to_dicts()
    assert other["error"] is None
    log = (tmp_path / "ut/two/scx_own/seed-1/policy.log").read_text()
    assert "a thread, which only the simulator runs" in log


TIMES = """
#include <scx/launch.h>
SL_USER_THREAD(4000000, 100000)
{
	for (s32 cpu = 0; cpu < (s32)scx_bpf_nr_cpu_ids(); cpu++)
		bpf_printk("%llu %llu %llu", sl_scx_cpu_user_ns(cpu), sl_scx_cpu_system_ns(cpu), sl_scx_cpu_idle_ns(cpu));
}
"""
ONE_AND_HALF = """
[workload]
title = "One CPU always, one half of the time"
question = "What did the CPUs do?"
jitter = "0ms"
[[task]]
name = "always"
affinity = [0]
phases = [{run = "20ms"}]
[[task]]
name = "half"
affinity = [2]
phases = [{loop = 10, do = [{run = "1ms"}, {sleep = "1ms"}]}]
"""


def test_what_cpus_did_is_known_to_a_thread(tmp_path, simulator):
    """As /proc/stat says it: of tasks that run and of CPUs that are idle, too, without those that are offline."""
    source = tmp_path / "scx_own.bpf.c"
    hotplug = ".cpu_online = (void *)own_hotplug, .cpu_offline = (void *)own_hotplug, .enqueue"
    source.write_text(
        SMALL.replace(".enqueue", hotplug).replace(
            "SCX_OPS_DEFINE", "void BPF_STRUCT_OPS(own_hotplug, s32 cpu) { }\nSCX_OPS_DEFINE"
        )
    )
    source.with_name("scx_own.launch.c").write_text(TIMES)
    (tmp_path / "two.toml").write_text(ONE_AND_HALF)

    def ms_by_round(cpus, **machine):
        out = tmp_path / "out"
        (run,) = schedlab.run(
            str(tmp_path / "two.toml"), str(source), cpus=cpus, out=out, **machine
        ).runs.to_dicts()
        assert (run["error"], run["consistency"]) == (None, "ok")
        log = (out / "two/scx_own/seed-1/policy.log").read_text().splitlines()
        lines = [tuple(int(word) / 1e6 for word in line.split()[-3:]) for line in log]
        return [lines[at : at + cpus] for at in range(0, len(lines), cpus)]

    # The thread, on CPU 1, has 0.1 ms of each 4.1 ms; it is in the midst of bursts, and of idle times.
    first, second, *_ = ms_by_round(3)
    assert first == [(4.1, 0, 0), (0, 0.1, 4), (2.1, 0, 2)]
    assert second == [(8.2, 0, 0), (0, 0.2, 8), (4.2, 0, 4)]
    # Ticks of 0.2 ms, the last of which is half over; a real-time task for 1 ms; CPU 3 is offline for 2 ms.
    first, *_ = ms_by_round(
        4, tick="1ms", costs={"tick_ns": "200us"}, above=["0:2500us:1ms"], offline=["3:1ms:2ms"]
    )
    assert first == [(2.6, 1.5, 0), (0, 0.1, 4), (2.1, 0, 2), (0, 0, 2.1)]


def test_utilization_that_a_thread_sets(tmp_path, simulator, root):
    """Tasks have 4.1 + 2.1 of 3 x 4.1 ms in each round, which is 516.2 of 1024; then only one is left."""
    source = tmp_path / "scx_own.bpf.c"
    source.write_text(SMALL)
    header = root / "policies" / "launch" / "utilization.h"
    source.with_name("scx_own.launch.c").write_text(
        f'#include "{header}"\nSL_USER_THREAD(4000000, 100000) {{ bpf_printk("%llu", launch_utilization()); }}\n'
    )
    (tmp_path / "two.toml").write_text(ONE_AND_HALF.replace("loop = 10", "loop = 4"))
    (run,) = schedlab.run(
        str(tmp_path / "two.toml"), str(source), cpus=3, out=tmp_path / "out"
    ).runs.to_dicts()
    assert (run["error"], run["consistency"]) == (None, "ok")
    log = (tmp_path / "out/two/scx_own/seed-1/policy.log").read_text().splitlines()
    # In the second round the task that sleeps ends with it, at 7 ms: 4.1 + 1.9 of 12.3 ms.
    assert [int(line.split()[-1]) for line in log] == [516, 500, 341, 341]


def test_a_thread_of_a_user_half_ends_no_deadlock(tmp_path, simulator):
    source = tmp_path / "scx_own.bpf.c"
    source.write_text(SMALL)
    source.with_name("scx_own.launch.c").write_text(THREAD)
    turns = '{{lock = "{0}"}}, {{sleep = "50ms"}}, {{lock = "{1}"}}, {{unlock = "{1}"}}, {{unlock = "{0}"}}'
    tasks = [f'[[task]]\nname = "t{both}"\nphases = [{turns.format(*both)}]\n' for both in ("ab", "ba")]
    locks = [f'[[lock]]\nname = "{name}"\n' for name in "ab"]
    (tmp_path / "two.toml").write_text(SLEEPERS.partition("[[task]]")[0] + "".join([*locks, *tasks]))
    (run,) = schedlab.run(str(tmp_path / "two.toml"), str(source), out=tmp_path / "out").runs.to_dicts()
    assert "nothing can happen any more, 2 tasks wait" in run["error"]


def test_a_user_half_that_refuses_the_machine(tmp_path, simulator):
    source = tmp_path / "scx_own.bpf.c"
    source.write_text(SMALL + 'SEC("syscall") int setup(s32 *input) { return -5; }\n')
    source.with_name("scx_own.launch.c").write_text(
        "#include <scx/launch.h>\nstatic int launch(void)\n{\n\treturn scx_bpf_nr_cpu_ids() > 2 ? "
        'SL_REFUSE("too many CPUs: %u", scx_bpf_nr_cpu_ids()) : 0;\n}\n'
    )
    source.with_name("scx_own.launch.toml").write_text('[[call]]\nprogram = "setup"\ninput = [0]\n')

    def error(cpus):
        return schedlab.run("mixed", str(source), cpus=cpus, out=tmp_path / "out").runs["error"][0]

    assert "its user half refuses this machine: scx_own.launch.c:4: too many CPUs: 4" in error(4)
    assert 'its SEC("syscall") program setup returned -5' in error(2)


RINGS = """
#include <scx/common.bpf.h>
char _license[] SEC("license") = "GPL";
const volatile s32 user_pid;
u32 nr_refused;
struct asked { s32 pid; u32 padding[21]; };
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4097);
} to_user SEC(".maps");
struct answer { s32 pid; u64 slice_ns; };
struct {
	__uint(type, BPF_MAP_TYPE_USER_RINGBUF);
	__uint(max_entries, 4096);
} from_user SEC(".maps");
s32 BPF_STRUCT_OPS(own_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	return prev_cpu;
}
void BPF_STRUCT_OPS(own_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct asked *asked;

	if (p->pid == user_pid)
		return;
	asked = bpf_ringbuf_reserve(&to_user, sizeof(*asked), 0);
	if (!asked) {
		scx_bpf_error("no room");
		return;
	}
	asked->pid = -1;
	bpf_ringbuf_discard(asked, 0);
	asked = bpf_ringbuf_reserve(&to_user, sizeof(*asked), 0);
	if (!asked)
		return;
	asked->pid = p->pid;
	bpf_ringbuf_submit(asked, 0);
}
static void insert(s32 pid, u64 slice_ns)
{
	struct task_struct *p = bpf_task_from_pid(pid);

	if (!p)
		return;
	scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, slice_ns, 0);
	bpf_task_release(p);
}
static long each(struct bpf_dynptr *record, void *ctx)
{
	const struct answer *answer = bpf_dynptr_data(record, 0, sizeof(*answer));
	s32 pid = 0;

	if (bpf_dynptr_data(record, 1, sizeof(*answer)) || !answer ||
	    bpf_dynptr_read(&pid, sizeof(pid), record, 0, 0) || pid != answer->pid)
		nr_refused++;
	else
		insert(answer->pid, answer->slice_ns);
	return scx_bpf_dispatch_nr_slots() == 0;
}
void BPF_STRUCT_OPS(own_dispatch, s32 cpu, struct task_struct *prev)
{
	if (bpf_user_ringbuf_drain(&from_user, each, NULL, 4) != -EINVAL ||
	    bpf_user_ringbuf_drain(&from_user, each, NULL, BPF_RB_NO_WAKEUP) < 0)
		scx_bpf_error("not drained");
	if (bpf_ringbuf_query(&to_user, BPF_RB_AVAIL_DATA))
		insert(user_pid, SCX_SLICE_DFL);
}
void BPF_STRUCT_OPS(own_exit, struct scx_exit_info *ei)
{
	bpf_printk("refused %u size %llu produced %llu left %llu", nr_refused,
		   bpf_ringbuf_query(&to_user, BPF_RB_RING_SIZE), bpf_ringbuf_query(&to_user, BPF_RB_PROD_POS),
		   bpf_ringbuf_query(&to_user, BPF_RB_PROD_POS) - bpf_ringbuf_query(&to_user, BPF_RB_CONS_POS));
}
SCX_OPS_DEFINE(own_ops, .select_cpu = (void *)own_select_cpu, .enqueue = (void *)own_enqueue,
	       .dispatch = (void *)own_dispatch, .exit = (void *)own_exit, .name = "own");
"""
READER = """
#include <scx/launch.h>
static int launch(void)
{
	SL_SET(user_pid, sl_scx_user_half_pid());
	return 0;
}
SL_USER_HALF(50000)
{
	struct asked asked;
	struct answer answer = { .slice_ns = 2000000 };

	while (SL_RING_READ(&to_user, &asked)) {
		answer.pid = asked.pid;
		if (!SL_RING_WRITE(&from_user, &answer))
			scx_bpf_error("no room for an answer");
	}
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_ring_buffers_in_both_directions(tmp_path, simulator, need, monkeypatch, compiler):
    """Records of 88 bytes that go round often, half of them discarded; a user half that answers in one of its own."""
    monkeypatch.setenv("CC", need(compiler))
    source = tmp_path / "scx_own.bpf.c"
    source.write_text(RINGS)
    source.with_name("scx_own.launch.c").write_text(READER)
    (tmp_path / "two.toml").write_text(TWO_TASKS.replace("loop = 10", "loop = 100"))
    workload = str(tmp_path / "two.toml")
    result = schedlab.run(workload, str(source), cpus=1, tick="1ms", out=tmp_path / "out")
    (run,) = result.runs.to_dicts()
    assert (run["error"], run["consistency"]) == (None, "ok")
    (line,) = (tmp_path / "out/two/scx_own/seed-1/policy.log").read_text().splitlines()
    words = line.split()
    assert words[1:5] == ["refused", "0", "size", "8192"]
    assert int(words[6]) > 2 * 8192
    assert int(words[6]) % (2 * 96) == 0
    assert words[8] == "0"
    (refused,) = schedlab.run(workload, str(source), host="uthreads", out=tmp_path / "ut").runs.to_dicts()
    assert "which only the simulator has" in refused["error"]


def test_a_ring_buffer_that_nobody_reads_is_full(tmp_path, simulator):
    source = tmp_path / "scx_own.bpf.c"
    source.write_text(RINGS)
    (run,) = schedlab.run("mixed", str(source), out=tmp_path / "out").runs.to_dicts()
    assert "failed to run for" in run["error"] or "no room" in run["error"]
