/* SPDX-License-Identifier: MIT */
/*
 * player_tool.c - what the tests of player/ run, under sanitizers.
 *
 *	player_tool check FILE              "ok", or what is wrong
 *	player_tool play FILE TASK          one line per verb that is played
 *	player_tool fuzz FILE ROUNDS SEED   damages the file in memory, again and
 *	                                    again, and plays all that is accepted
 *	player_tool work NAME-NUMBER UNITS  the number that sl_work() returns
 *
 * The program lies in memory of exactly its size, so that AddressSanitizer sees
 * the first byte that is read outside it.
 *
 * Read next: test_program.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "player.h"

#define STEPS_MAX 2000
#define STOPPED (-1)

struct play {
	u64 now_ns;
	u64 steps;
	bool prints;
};

static struct play *play_of(struct sl_player *p)
{
	return p->host;
}

static int step(struct sl_player *p, const char *verb, u64 a, u64 b)
{
	struct play *play = play_of(p);

	if (play->prints)
		printf("%llu %s %llu %llu\n", play->now_ns, verb, a, b);
	return ++play->steps < STEPS_MAX ? 0 : STOPPED;
}

static u64 now_ns(struct sl_player *p)
{
	return play_of(p)->now_ns;
}

static int run(struct sl_player *p, u64 ns)
{
	int stop = step(p, "run", ns, 0);

	play_of(p)->now_ns += ns;
	return stop;
}

static int work(struct sl_player *p, u32 kind, u64 units)
{
	return step(p, "work", kind, units);
}

static int sleep_until(struct sl_player *p, u64 at_ns)
{
	int stop = step(p, "sleep_until", at_ns, 0);

	play_of(p)->now_ns = at_ns;
	return stop;
}

static int io_read(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags)
{
	(void)flags;
	return step(p, "read", bytes / chunk_bytes, chunk_bytes);
}

static int io_write(struct sl_player *p, u64 bytes, u32 chunk_bytes, u8 flags)
{
	(void)flags;
	return step(p, "write", bytes / chunk_bytes, chunk_bytes);
}

static int yield(struct sl_player *p)
{
	return step(p, "yield", 0, 0);
}

/* Reading the object is the point: an index out of range would be seen here. */
static int object(struct sl_player *p, const char *verb, u32 idx, u64 bytes)
{
	u64 param = sl_program_objects(p->program)[idx].param;

	return step(p, verb, idx + 0 * param, bytes);
}

static int lock(struct sl_player *p, u32 o)
{
	return object(p, "lock", o, 0);
}

static int unlock(struct sl_player *p, u32 o)
{
	return object(p, "unlock", o, 0);
}

static int send(struct sl_player *p, u32 o, u64 bytes)
{
	return object(p, "send", o, bytes);
}

static int recv(struct sl_player *p, u32 o, u64 bytes)
{
	return object(p, "recv", o, bytes);
}

static int barrier(struct sl_player *p, u32 o)
{
	return object(p, "barrier", o, 0);
}

static int await(struct sl_player *p, u32 o, u32 lock_object)
{
	u64 kind = 0;

	if (lock_object != SL_PROGRAM_NONE)
		kind = sl_program_objects(p->program)[lock_object].kind;
	return object(p, kind ? "await_unlocked" : "await", o, 0);
}

static int signal_condition(struct sl_player *p, u32 o, bool all)
{
	return object(p, all ? "signal_all" : "signal", o, 0);
}

static int spawn(struct sl_player *p, u32 task)
{
	u32 parent = sl_program_tasks(p->program)[task].parent;

	if (parent != p->task)
		abort();
	return step(p, "spawn", task, 0);
}

static int wait_children(struct sl_player *p, u64 children)
{
	return step(p, "wait", children, 0);
}

static int set(struct sl_player *p, u32 key, u64 value)
{
	return step(p, "set", key, value);
}

static const struct sl_player_ops play_ops = {
	.now_ns = now_ns,
	.run = run,
	.work = work,
	.sleep_until = sleep_until,
	.read = io_read,
	.write = io_write,
	.yield = yield,
	.lock = lock,
	.unlock = unlock,
	.send = send,
	.recv = recv,
	.barrier = barrier,
	.await = await,
	.signal = signal_condition,
	.spawn = spawn,
	.wait = wait_children,
	.set = set,
};

static int play_task(const void *program, u32 task, bool prints)
{
	struct play play = { .prints = prints };
	struct sl_player player = {
		.program = program,
		.task = task,
		.ops = &play_ops,
		.host = &play,
	};

	return sl_player_run(&player);
}

/* What a host reads of a program beside its ops. */
static u64 touch_all(const void *program)
{
	const struct sl_program_header *h = program;
	u64 sum = strlen(sl_program_string(program, h->name));
	u32 i, w;

	for (i = 0; i < h->nr_objects; i++)
		sum += strlen(sl_program_string(program, sl_program_objects(program)[i].name));
	for (i = 0; i < h->nr_tasks; i++) {
		const struct sl_program_task *t = &sl_program_tasks(program)[i];

		sum += strlen(sl_program_string(program, t->name));
		for (w = 0; t->affinity != SL_PROGRAM_NONE && w < t->affinity_words; w++)
			sum += sl_program_values(program)[t->affinity + w];
	}
	return sum;
}

static u64 random_state;

static u32 draw(u32 limit)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) % limit;
}

/* A few bytes become others; most often small ones, as indices are. */
static void damage(u8 *data, u64 bytes)
{
	static const u32 telling[] = { 0,   1,	   2,	       15,	   16,
				       255, 65535, 0x7fffffff, 0x80000000, 0xffffffff };
	u32 n = 1 + draw(3);

	while (n--) {
		u32 value = draw(2) ? telling[draw(10)] : draw(40);
		u64 at = draw(bytes / 4) * 4;

		if (draw(3))
			memcpy(data + at, &value, sizeof(value));
		else
			data[draw(bytes)] = value;
	}
}

static void fuzz(const u8 *good, u64 bytes, u64 rounds, u64 seed)
{
	u64 accepted = 0;
	u64 sum = 0;
	char why[200];
	u64 i;

	random_state = seed;
	for (i = 0; i < rounds; i++) {
		u64 kept = draw(8) ? bytes : draw(bytes + 1);
		u8 *data = malloc(kept ? kept : 1);
		u32 t;

		memcpy(data, good, kept);
		if (kept >= 4)
			damage(data, kept);
		if (!sl_program_check(data, kept, why, 1 + draw(sizeof(why)))) {
			const struct sl_program_header *h = (void *)data;

			accepted++;
			sum += touch_all(data);
			for (t = 0; t < h->nr_tasks; t++)
				sum += play_task(data, t, false) == 0;
		} else if (strnlen(why, sizeof(why)) == sizeof(why)) {
			abort();
		}
		free(data);
	}
	printf("%llu of %llu accepted, %llu\n", accepted, rounds, sum);
}

static u8 *read_file(const char *path, u64 *bytes)
{
	FILE *f = fopen(path, "rb");
	u8 *data;

	if (!f || fseek(f, 0, SEEK_END)) {
		perror(path);
		exit(2);
	}
	*bytes = ftell(f);
	rewind(f);
	data = malloc(*bytes ? *bytes : 1);
	if (fread(data, 1, *bytes, f) != *bytes)
		exit(2);
	fclose(f);
	return data;
}

int main(int argc, char **argv)
{
	char why[200] = "";
	int failed = 0;
	u64 bytes;
	u8 *data;

	if (argc == 4 && !strcmp(argv[1], "work")) {
		printf("%llu\n", sl_work(atoi(argv[2]), atoll(argv[3])));
		return 0;
	}
	if (argc < 3)
		return 2;
	data = read_file(argv[2], &bytes);
	if (argc == 5 && !strcmp(argv[1], "fuzz")) {
		fuzz(data, bytes, atoll(argv[3]), atoll(argv[4]));
	} else if (sl_program_check(data, bytes, why, sizeof(why))) {
		puts(why);
		failed = 1;
	} else if (!strcmp(argv[1], "check")) {
		puts("ok");
	} else if (argc == 4 && !strcmp(argv[1], "play")) {
		printf("end %d\n", play_task(data, atoi(argv[3]), true));
	}
	free(data);
	return failed;
}
