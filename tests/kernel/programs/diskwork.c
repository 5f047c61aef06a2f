/* SPDX-License-Identifier: MIT */
/*
 * diskwork.c - keeps the disk busy in a way that can be checked afterwards.
 *
 *	diskwork SEED PROCESSES OPERATIONS
 *
 * Each process has a folder of its own, /w0, /w1, ... Before operation k it writes
 * "mark PROCESS k" into its file "mark"; after some it calls fsync(). So whoever
 * finds mark k on the disk knows that every fsync() before k had returned.
 *
 * tests/kernel/power_cut.py has the same operations and random numbers: what is
 * changed here is changed there.
 */
#include "kernel/types.h"
#include "kernel/stat.h"
#include "kernel/fcntl.h"
#include "user/user.h"

#define BYTES_MAX 8192

static uint state;
static char data[BYTES_MAX];
static int orphan = -1; /* a file without a name, still open */

static uint random(uint n)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return (state >> 8) % n;
}

/* "f3", "l0", "d1" */
static char *name(char kind, uint i)
{
	static char names[4][3];
	static uint at;
	char *to = names[at++ % 4];

	to[0] = kind;
	to[1] = '0' + i;
	return to;
}

static void write_file(const char *path, int mode, uint n, int k)
{
	int fd = open(path, mode);

	for (uint i = 0; i < n; i++)
		data[i] = k * 7 + i;
	if (fd < 0 || write(fd, data, n) != (int)n)
		fail("a write in operation %d", k);
	close(fd);
}

static void make_orphan(uint n, int k)
{
	if (orphan >= 0)
		close(orphan);
	orphan = open("o", O_CREATE | O_RDWR);
	for (uint i = 0; i < n; i++)
		data[i] = k;
	if (orphan < 0 || write(orphan, data, n) != (int)n || unlink("o") < 0)
		fail("an orphan in operation %d", k);
}

static void operation(int k)
{
	uint what = random(8), i = random(6), j = random(2), n = random(BYTES_MAX - 1) + 1;
	char inner[] = "d0/x";

	inner[1] += j;
	switch (what) {
	case 0:
		write_file(name('f', i), O_CREATE | O_TRUNC | O_WRONLY, n, k);
		break;
	case 1:
		write_file(name('f', i), O_CREATE | O_APPEND | O_WRONLY, n % 2000 + 1, k);
		break;
	case 2:
		unlink(name('f', i));
		break;
	case 3:
		link(name('f', i), name('l', j));
		break;
	case 4:
		unlink(name('l', j));
		break;
	case 5:
		if (mkdir(name('d', j)) < 0)
			unlink(name('d', j));
		break;
	case 6:
		make_orphan(n, k);
		break;
	case 7:
		if (link(name('f', i), inner) < 0)
			unlink(inner);
		else
			unlink(name('f', i));
		break;
	}
}

static void put_mark(int fd, uint process, int k)
{
	char text[] = "mark 0 000000\n";

	text[5] += process;
	for (int at = 12; k; k /= 10)
		text[at--] += k % 10;
	if (fd < 0 || write(fd, text, 14) != 14)
		fail("a mark in operation %d", k);
	close(fd);
}

static void work(uint seed, uint process, int nr)
{
	char folder[] = "/w0";
	int fd;

	folder[2] += process;
	state = seed * 1000 + process * 7919 + 1;
	if (mkdir(folder) < 0 || chdir(folder) < 0)
		fail("mkdir in operation %d", 0);
	fd = open("mark", O_CREATE | O_WRONLY);
	put_mark(dup(fd), process, 0);
	fsync(fd);
	close(fd);
	for (int k = 1; k <= nr; k++) {
		put_mark(open("mark", O_WRONLY), process, k);
		operation(k);
		if (random(3) == 0) {
			fd = open("mark", O_RDONLY);
			if (fsync(fd) < 0)
				fail("fsync in operation %d", k);
			close(fd);
		}
	}
	exit(0);
}

int main(int argc, char **argv)
{
	int nr = argc > 2 ? atoi(argv[2]) : 0, status, failed = 0;

	if (argc != 4) {
		fprintf(2, "usage: diskwork SEED PROCESSES OPERATIONS\n");
		exit(2);
	}
	for (int i = 0; i < nr; i++) {
		if (fork() == 0)
			work(atoi(argv[1]), i, atoi(argv[3]));
	}
	for (int i = 0; i < nr; i++) {
		wait(&status);
		failed |= status;
	}
	printf("diskwork: %s\n", failed ? "failed" : "done");
	exit(failed);
}
