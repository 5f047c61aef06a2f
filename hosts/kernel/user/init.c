/* SPDX-License-Identifier: MIT */
/*
 * init.c - the first process: gives the others a console, starts one program,
 * and waits for orphans for as long as the machine runs.
 *
 * Without arguments it starts the shell, again and again. The kernel passes
 * what the boot argument `run` says: then that program runs instead, and when
 * it ends the machine goes off with its status.
 *
 * Read next: sh.c.
 */
#include "kernel/types.h"
#include "kernel/stat.h"
#include "kernel/fcntl.h"
#include "kernel/file.h"
#include "user/user.h"

/* Descriptors 0, 1 and 2; device files are made on the first boot of a disk. */
static void open_console(void)
{
	mknod("/console", CONSOLE, 0);
	mknod("/job", JOB, 0);
	mknod("/null", NULLDEV, 0);
	mknod("/keys", KEYS, 0);
	mknod("/channel", CHANNEL, 0);
	if (open("/console", O_RDWR) != 0)
		poweroff(1); /* no console to say why */
	dup(0);
	dup(0);
}

static int start(char **argv)
{
	int pid = fork();

	if (pid < 0)
		fprintf(2, "init: fork failed\n");
	if (pid)
		return pid;
	exec(argv[0], argv);
	fprintf(2, "init: cannot run %s; does it exist?\n", argv[0]);
	exit(127);
}

int main(int argc, char **argv)
{
	static char *shell[] = { "/sh", 0 };
	int pid, child, status;

	open_console();
	if (argc == 1)
		printf("\nThis is the teaching kernel. `help` says what there is, `poweroff` ends it.\n");
	for (;;) {
		pid = start(argc > 1 ? argv + 1 : shell);
		do {
			child = wait(&status);
		} while (child >= 0 && child != pid);
		if (argc > 1 || child < 0)
			poweroff(child < 0 ? 1 : status);
		printf("The shell has ended; here is another one. `poweroff` ends the machine.\n");
	}
}
