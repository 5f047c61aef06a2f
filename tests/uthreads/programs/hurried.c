/* SPDX-License-Identifier: MIT */
/*
 * hurried.c - a call does what it is asked for while the program's signals rain down.
 *
 *	hurried POLICY CPUS
 *
 * Linux has no way to write to an eventfd without perhaps waiting, so a helper does it,
 * which is made anew for each machine.
 */
#include "check.h"

#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#define NR_MACHINES 100
#define BETWEEN_SIGNALS_US 20

static void ignore(int signal)
{
	(void)signal;
}

static void set_alarms(int each_us)
{
	struct itimerval each = { { 0, each_us }, { 0, each_us } };

	CHECK_IS(setitimer(ITIMER_REAL, &each, NULL), 0);
}

int main(int argc, char **argv)
{
	struct ut_config config = check_config(argc, argv);
	struct sigaction act = { .sa_handler = ignore };

	CHECK_IS(sigaction(SIGALRM, &act, NULL), 0);
	for (int i = 0; i < NR_MACHINES; i++) {
		uint64_t number = 5;
		ssize_t n;
		int fd;

		check_init(&config);
		fd = eventfd(0, 0);
		set_alarms(BETWEEN_SIGNALS_US);
		n = ut_write(fd, &number, sizeof(number));
		set_alarms(0);
		CHECK_IS(n, sizeof(number));
		CHECK_IS(read(fd, &number, sizeof(number)), sizeof(number));
		CHECK_IS(number, 5);
		CHECK_IS(close(fd), 0);
		CHECK_IS(ut_exit(), 0);
	}
	puts("good");
	return 0;
}
