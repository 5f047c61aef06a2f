/* SPDX-License-Identifier: MIT */
/*
 * killsync.c - is a kill lost that meets a process on its way into a wait?
 *
 * Several workers fork a child that says when it is about to wait for ever, in one
 * of five kinds of objects, and kill it at once: before, while, or after it begins
 * to wait. A child that does not hear of it is waited for in vain.
 */
#include "kernel/types.h"
#include "lab/syncspec.h"
#include "user/user.h"

#define WORKERS	4
#define KILLS	300	/* of each worker */
#define DELAY	1500	/* rounds at most between "now" and the wait */

static const struct sync_spec specs[] = {
	{ SYNC_LOCK, 0, { 0 } },      { SYNC_PIPE, 0, { 4 } },	  { SYNC_BARRIER, 0, { 2 } },
	{ SYNC_CONDITION, 0, { 0 } }, { SYNC_COUNTER, 0, { 0 } },
};
static const int ops[] = {
	SYNC_TAKE_LOCK, SYNC_RECV, SYNC_ARRIVE, SYNC_AWAIT, SYNC_TAKE,
};

static void work(unsigned int seed)
{
	int fd = syncs(specs, 5), fds[2];
	char c = 0;

	pipe(fds);
	syncop(fd, 0, SYNC_TAKE_LOCK, 0);
	for (int n = 0; n < KILLS; n++) {
		int i = n % 5, pid = fork();

		seed = seed * 1103515245 + 12345;
		if (pid == 0) {
			write(fds[1], &c, 1);
			for (volatile int k = (int)(seed >> 16) % DELAY; k > 0; k--)
				;
			syncop(fd, i, ops[i], ops[i] == SYNC_AWAIT ? 0 : 5);
			exit(0);
		}
		read(fds[0], &c, 1);
		kill(pid);
		wait(0);
	}
	exit(0);
}

int main(void)
{
	for (int i = 0; i < WORKERS; i++)
		if (fork() == 0)
			work((unsigned int)i);
	for (int i = 0; i < WORKERS; i++)
		wait(0);
	printf("nobody was forgotten\n");
	return 0;
}
