/* SPDX-License-Identifier: MIT */
/*
 * frame.c - the way out of the guest: QEMU's debug port, one byte at a time.
 *
 * A write to the port goes into a file outside at once, without a driver, an
 * interrupt or a wake-up in the guest; a serial line would have all three. The
 * kernel's own messages go to the serial line, so the two never mix.
 *
 * Read next: python/schedlab/hosts/guest.py, the reader.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <unistd.h>

#include "guest.h"

#define DEBUG_PORT 0xe9

void frame_init(void)
{
	if (ioperm(DEBUG_PORT, 1, 1)) {
		perror("guest: the debug port cannot be had");
		exit(1);
	}
}

static void send_bytes(const void *data, u64 bytes)
{
	__asm__ volatile("rep outsb"
			 : "+S"(data), "+c"(bytes)
			 : "d"((u16)DEBUG_PORT)
			 : "memory");
}

void frame_bytes(const char *name, const void *data, u64 bytes)
{
	char head[80];
	int n = snprintf(head, sizeof(head), "%s %llu\n", name, bytes);

	send_bytes(head, n);
	send_bytes(data, bytes);
	send_bytes("\n", 1);
}

void frame_text(const char *name, const char *fmt, ...)
{
	char text[8192];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n >= (int)sizeof(text))
		n = sizeof(text) - 1;
	frame_bytes(name, text, n);
}

void frame_file(const char *name, const char *path)
{
	static char text[65536];
	u64 used = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return;
	while (used < sizeof(text) &&
	       (n = read(fd, text + used, sizeof(text) - used)) > 0)
		used += n;
	close(fd);
	frame_bytes(name, text, used);
}
