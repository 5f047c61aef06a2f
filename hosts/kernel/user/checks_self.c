/* SPDX-License-Identifier: MIT */
/*
 * checks_self.c - checks that fail, each in its own way: the runner must say so.
 * They run only when they are asked for by name.
 *
 * Read next: checks.c.
 */
#include "kernel/types.h"
#include "kernel/fcntl.h"
#include "user/checks.h"
#include "user/user.h"

static void fails(void)
{
	CHECK_EQUAL(getpid(), -1);
}

static void crashes(void)
{
	*(volatile int *)check_wild[0] = 1;
}

static void leaves_a_file(void)
{
	check_make_file("left", 2000);
}

/* Its parent is gone when it is looked for; it sleeps for longer than that. */
static void leaves_a_process(void)
{
	if (check_fork() == 0)
		sleep(1000);
}

const struct check checks_self[] = {
	{ "self-fails", fails, CHECK_ALONE | CHECK_FAILS },
	{ "self-crashes", crashes, CHECK_ALONE | CHECK_FAILS },
	{ "self-leaves-a-file", leaves_a_file, CHECK_ALONE | CHECK_FAILS },
	{ "self-leaves-a-process", leaves_a_process, CHECK_ALONE | CHECK_FAILS },
	{ 0, 0, 0 },
};
