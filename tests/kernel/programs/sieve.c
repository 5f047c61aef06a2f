// SPDX-License-Identifier: MIT
// Prime numbers by a chain of processes; each filters what it gets through a pipe.
// Written against xv6's interface alone: its headers, its calls, its limits.

#include "kernel/types.h"
#include "kernel/stat.h"
#include "user/user.h"

#define LAST 100

void filter(int in)
{
	int prime, number, next[2];

	if (read(in, &prime, sizeof(prime)) != sizeof(prime)) {
		close(in);
		exit(0);
	}
	printf("prime %d\n", prime);
	pipe(next);
	if (fork() == 0) {
		close(in);
		close(next[1]);
		filter(next[0]);
	}
	close(next[0]);
	while (read(in, &number, sizeof(number)) == sizeof(number))
		if (number % prime)
			write(next[1], &number, sizeof(number));
	close(in);
	close(next[1]);
	wait(0);
	exit(0);
}

int main(int argc, char *argv[])
{
	int fds[2], i;

	pipe(fds);
	if (fork() == 0) {
		close(fds[1]);
		filter(fds[0]);
	}
	close(fds[0]);
	for (i = 2; i <= LAST; i++)
		write(fds[1], &i, sizeof(i));
	close(fds[1]);
	wait((int *)0);
	exit(0);
}
