/* SPDX-License-Identifier: MIT */
/*
 * play.c - plays a workload program: a process per task, on real time slices.
 *
 *	play [-f FILE] [-t TICK_NS] [-i LATENCY,PER_KIB,CALL,DEPTH] [-c CPUS] [POLICY [KNOB=N]...]
 *
 * Without -f the program is the machine's job: then the policy sees the tasks and
 * nothing else, and the machine goes off when they have ended. All processes are made before the
 * first one starts, each held back until it arrives, so that nothing but the
 * workload itself is on the CPUs then; this one waits until all have ended.
 *
 *	read program -> sync objects -> a held process per task, its attributes
 *	-> time 0, a tick: timers let them go, the policy comes into force
 *	-> all have ended, or the horizon
 *
 * Task i gets the i-th pid in a row: so a parent knows the tasks that it spawns,
 * and a policy that goes by pids meets them in the order of the program.
 *
 * Read next: playverbs.c; hosts/kernel/lab/sync.c.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "kernel/param.h"
#include "lab/syncspec.h"
#include "user/user.h"
#include "user/play.h"

#include <scx/types.h>
#include <scx/attrs.h>

#define MS 1000000ULL
#define POLICY_BYTES 512
/* Between now and time 0 there are these; half of it is for the policy. */
#define SET_UP_NS (1000 * MS)
#define SET_UP_TASK_NS (MS / 4)

/*
 * With several CPUs time goes on while the emulator is busy with another one, and a
 * task that only counted its rounds would run for longer than it was told to.
 */
#define SPIN_NS_MAX_MANY 50000

struct options {
	const char *file;
	u64 nr_cpus;
	u64 tick_ns;
	u64 device[4];		   /* ns, ns per KiB, ns per call, requests */
	char policy[POLICY_BYTES]; /* "": leave the one in force */
};

void play_send(const char *line, int bytes)
{
	static int channel = -1;

	if (bytes >= PLAY_LINE_BYTES)
		bytes = PLAY_LINE_BYTES - 1;
	if (channel < 0)
		channel = open("/channel", O_WRONLY);
	if (write(channel, line, bytes) < 0)
		printf("%s\n", line);
}

/* ---- what is asked for ------------------------------------------------------ */

static u64 parse(const char *what, const char *text)
{
	long value;

	if (!parse_number(text, &value) || value < 0)
		fail("play: %s: %s is not a number", what, text);
	return value;
}

static void parse_device(struct options *o, char *text)
{
	for (int i = 0; i < 4; i++) {
		char *comma = strchr(text, ',');

		if (!comma != (i == 3))
			fail("play: -i needs LATENCY,PER_KIB,CALL,DEPTH");
		if (comma)
			*comma = 0;
		o->device[i] = parse("-i", text);
		text = comma + 1;
	}
}

static void parse_options(struct options *o, int argc, char **argv)
{
	int i;
	int used = 0;

	for (i = 1; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (strcmp(argv[i], "-f") == 0)
			o->file = argv[i + 1];
		else if (strcmp(argv[i], "-t") == 0)
			o->tick_ns = parse("-t", argv[i + 1]);
		else if (strcmp(argv[i], "-i") == 0)
			parse_device(o, argv[i + 1]);
		else if (strcmp(argv[i], "-c") == 0)
			o->nr_cpus = parse("-c", argv[i + 1]);
		else
			fail("play: unknown option %s; -f, -t, -i and -c are known", argv[i]);
	}
	if (!o->tick_ns || !o->device[3])
		fail("play: a tick and a device's depth must be above 0");
	for (; i < argc; i++) {
		used += snprintf(o->policy + used, sizeof(o->policy) - used, "%s%s",
				 used ? " " : "", argv[i]);
		if (used >= (int)sizeof(o->policy))
			fail("play: too many knobs");
	}
}

static void read_all(int fd, void *to, u64 bytes)
{
	while (bytes) {
		int n = read(fd, to, bytes < 1 << 20 ? (int)bytes : 1 << 20);

		if (n <= 0)
			fail("play: the program is cut short: %lu bytes are missing",
			     (unsigned long)bytes);
		to += n;
		bytes -= n;
	}
}

static const void *read_program(const char *file)
{
	struct sl_program_header head;
	char why[200];
	int fd = open(file, O_RDONLY);
	char *data;

	if (fd < 0)
		fail("play: cannot open %s", file);
	read_all(fd, &head, sizeof(head));
	if (head.total_bytes < sizeof(head) || head.total_bytes > 1 << 30)
		fail("play: %s is no workload program", file);
	data = sbrk((int)head.total_bytes + 16);
	if (data == SBRK_ERROR)
		fail("play: no memory for a program of %lu bytes", (unsigned long)head.total_bytes);
	data += -(unsigned long)data & 7;
	memcpy(data, &head, sizeof(head));
	read_all(fd, data + sizeof(head), head.total_bytes - sizeof(head));
	close(fd);
	if (sl_program_check(data, head.total_bytes, why, sizeof(why)))
		fail("play: %s: %s", file, why);
	if (sl_program_has_groups(data))
		fail("play: %s has groups, which this kernel lacks", file);
	return data;
}

/* ---- setting up -------------------------------------------------------------- */

static void make_syncs(struct play *play, const struct options *o)
{
	const struct sl_program_header *h = sl_program_header(play->program);
	const struct sl_program_object *objects = sl_program_objects(play->program);
	u32 nr = h->nr_objects + 2 + h->nr_tasks;
	struct sync_spec *specs = (void *)sbrk(nr * sizeof(*specs));

	if (specs == (void *)SBRK_ERROR || nr > SYNC_OBJECTS_MAX)
		fail("play: %u objects are too many", nr);
	play->all_ended = h->nr_objects;
	play->device = h->nr_objects + 1;
	play->children_ended = h->nr_objects + 2;
	for (u32 i = 0; i < nr; i++)
		specs[i] = (struct sync_spec){ .kind = SYNC_COUNTER };
	for (u32 i = 0; i < h->nr_objects; i++)
		specs[i] = (struct sync_spec){ .kind = objects[i].kind,
					       .param = { objects[i].param } };
	specs[play->device] = (struct sync_spec){
		.kind = SYNC_DEVICE,
		.param = { o->device[0], o->device[1], o->device[3] },
	};
	play->call_ns = o->device[2];
	play->syncs = syncs(specs, nr);
	if (play->syncs < 0)
		fail("play: %u objects cannot be made", nr);
}

static void be_task(struct play *play, u32 i, u64 arrival_ns)
{
	const struct sl_program_task *task = &sl_program_tasks(play->program)[i];
	struct sl_player player = {
		.program = play->program,
		.task = i,
		.ops = &play_verbs,
		.host = play,
		.arrival_ns = arrival_ns,
	};
	int result;

	syncop(play->syncs, play->all_ended, SYNC_ADD_AT_EXIT, 1);
	if (task->parent != SL_PROGRAM_NONE)
		syncop(play->syncs, play->children_ended + task->parent, SYNC_ADD_AT_EXIT, 1);
	result = sl_player_run(&player);
	if (result)
		play_say("result %u %d %u", i, result, sl_player_pc(&player));
	exit(result != 0);
}

static void give_attrs(const struct play *play, int pid, const struct sl_program_task *task)
{
	const long values[] = {
		[TASK_ATTR_PRIORITY] = task->priority,
		[TASK_ATTR_TICKETS] = task->tickets,
		[TASK_ATTR_CREDITS] = task->credits,
		[TASK_ATTR_CAP] = task->cap_percent,
		[TASK_ATTR_GROUP] = task->group,
		[TASK_ATTR_DEADLINE] = (long)task->deadline_ns,
		[TASK_ATTR_BURST] = (long)task->burst_ns,
	};

	for (int key = 0; key < TASK_ATTR_WEIGHT; key++)
		if (task->attr_given & 1U << key && setattr(pid, key, values[key]) < 0)
			fail("play: attribute %d cannot be %ld", key, values[key]);
	setattr(pid, TASK_ATTR_WEIGHT, task->weight);
	if (task->affinity != SL_PROGRAM_NONE &&
	    setaffinity(pid,
			(const unsigned long *)sl_program_values(play->program) + task->affinity,
			(int)task->affinity_words) < 0)
		fail("play: task '%s' may run on none of the CPUs",
		     sl_program_string(play->program, task->name));
}

static bool is_spawned(const struct sl_program_task *task)
{
	return task->arrival_ns == ~0ULL;
}

static void make_tasks(struct play *play, u64 start_ns)
{
	const struct sl_program_task *tasks = sl_program_tasks(play->program);

	for (u32 i = 0; i < sl_program_header(play->program)->nr_tasks; i++) {
		int pid = forkheld(sl_program_string(play->program, tasks[i].name));

		if (pid < 0)
			fail("play: there is no room for task %u; see procs_max", i);
		if (pid == 0) {
			play->first_pid = getpid() - (int)i;
			be_task(play, i,
				is_spawned(&tasks[i]) ? clock_ns() : start_ns + tasks[i].arrival_ns);
		}
		if (i == 0)
			play->first_pid = pid;
		if (pid != play->first_pid + (int)i)
			fail("play: others make processes, too; wait until they have ended");
		give_attrs(play, pid, &tasks[i]);
		play_say("task %u %d", i, pid);
	}
}

int main(int argc, char **argv)
{
	static struct play play;
	struct options o = {
		.tick_ns = 10 * MS,
		.device = { 100000, 1000, 1000, 1 },
	};
	const struct sl_program_header *h;
	const struct sl_program_task *tasks;
	u64 start_ns;

	parse_options(&o, argc, argv);
	play.program = read_program(o.file ? o.file : "/job");
	h = sl_program_header(play.program);
	tasks = sl_program_tasks(play.program);
	make_syncs(&play, &o);
	play.spin_ns_max = o.nr_cpus > 1 ? SPIN_NS_MAX_MANY : ~0ULL;
	play_calibrate(&play);
	start_ns = clock_ns() + SET_UP_NS + h->nr_tasks * SET_UP_TASK_NS;
	start_ns += o.tick_ns - start_ns % o.tick_ns;
	make_tasks(&play, start_ns);
	play_say("start %lu horizon %lu", (unsigned long)start_ns, (unsigned long)h->horizon_ns);
	for (u32 i = 0; i < h->nr_tasks; i++)
		if (!is_spawned(&tasks[i]))
			release(play.first_pid + (int)i, start_ns + tasks[i].arrival_ns);
	if (o.policy[0] && o.file && setpolicy(o.policy) < 0)
		fail("play: policy \"%s\" cannot be had", o.policy);
	if (clock_ns() + SET_UP_NS / 2 > start_ns)
		fail("play: setting up took %lu ns too long",
		     (unsigned long)(clock_ns() + SET_UP_NS / 2 - start_ns));
	if (!o.file) {
		syncop(play.syncs, play.all_ended, SYNC_OFF_AT, h->nr_tasks);
		play_at(o.policy[0] ? o.policy : "builtin", start_ns,
			h->horizon_ns ? start_ns + h->horizon_ns : 0);
	}
	syncop(play.syncs, play.all_ended, SYNC_TAKE, o.file ? h->nr_tasks : ~0UL);
	return 0;
}
