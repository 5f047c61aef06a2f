// SPDX-License-Identifier: MIT
// Meets xv6's limits by their names, with all of its headers in its usual order.

#include "kernel/param.h"
#include "kernel/types.h"
#include "kernel/stat.h"
#include "user/user.h"
#include "kernel/fs.h"
#include "kernel/fcntl.h"
#include "kernel/syscall.h"
#include "kernel/memlayout.h"
#include "kernel/riscv.h"

char big[(MAXOPBLOCKS + 2) * BSIZE];

// As many processes as there can be: fewer than 1000, and one more is refused.
int count_forks(void)
{
	int n, pid;

	for (n = 0; n < 1000; n++) {
		pid = fork();
		if (pid < 0)
			break;
		if (pid == 0)
			exit(0);
	}
	for (int i = 0; i < n; i++)
		if (wait(0) < 0)
			return -1;
	return wait(0) == -1 ? n : -1;
}

int main(void)
{
	int fd, n, xstatus, i;
	char *a, *old;

	n = count_forks();
	printf("forks %d\n", n > 0 && n < NPROC);
	for (n = 0; dup(0) >= 0; n++)
		;
	printf("descriptors %d\n", n + 3 == NOFILE);
	for (i = 3; i < NOFILE; i++)
		close(i);
	fd = open("big", O_CREATE | O_RDWR);
	for (n = 0; n < MAXFILE && write(fd, big, BSIZE) == BSIZE; n++)
		;
	printf("blocks %d\n", n == MAXFILE && write(fd, big, 1) < 0);
	close(fd);
	unlink("big");
	old = sbrk(0);
	a = sbrk(100 * 1024 * 1024);
	a[100 * 1024 * 1024 - 1] = 99;
	printf("memory %d\n", a == old && sbrk(-100 * 1024 * 1024) == a + 100 * 1024 * 1024);
	if (fork() == 0) {
		a = (char *)KERNBASE;
		*a = 1;
		exit(0);
	}
	wait(&xstatus);
	printf("fault %d\n", xstatus == -1);
	if (fork() == 0) {
		// One page of stack, and a guard below it.
		a = (char *)r_sp() - USERSTACK * PGSIZE;
		*a = 1;
		exit(0);
	}
	wait(&xstatus);
	printf("stack %d\n", xstatus == -1);
	n = uptime();
	sleep(2);
	printf("ticks %d\n", uptime() - n >= 2);
	printf("top %d\n", write(1, (char *)(MAXVA - 1), 1) == -1 && (uint64)sbrk(0) < TRAPFRAME);
	printf("%d %x %p %s %c %% %u\n", -5, 255, (void *)0x1000, "text", 'c', 7);
	exit(0);
}
