/* SPDX-License-Identifier: MIT */
/*
 * frame.c - answers, to a file or out of the guest.
 *
 * The guest's way out is QEMU's debug port, one byte at a time. A write to the
 * port goes into a file outside at once, without a driver, an interrupt or a
 * wake-up in the guest; a serial line would have all three. The kernel's own
 * messages go to the serial line, so the two never mix.
 *
 * Read next: python/schedlab/hosts/guest/frames.py, the reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <unistd.h>

#include "load.h"

#define DEBUG_PORT 0xe9

/* Where frames go; -1: the port. */
static int frame_fd = -1;

void frame_to_port(void)
{
	if (ioperm(DEBUG_PORT, 1, 1)) {
		perror("guest: the debug port cannot be had");
		exit(1);
	}
	frame_fd = -1;
}

void frame_to_file(int fd)
{
	frame_fd = fd;
}

static void send_to_port(const void *data, u64 bytes)
{
	__asm__ volatile("rep outsb" : "+S"(data), "+c"(bytes) : "d"((u16)DEBUG_PORT) : "memory");
}

static void send_bytes(const char *data, u64 bytes)
{
	if (frame_fd < 0) {
		send_to_port(data, bytes);
		return;
	}
	while (bytes) {
		ssize_t n = write(frame_fd, data, bytes);

		if (n < 0 && errno != EINTR)
			return; /* no reader: there is nothing to tell it */
		if (n > 0) {
			data += n;
			bytes -= n;
		}
	}
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
	while (used < sizeof(text) && (n = read(fd, text + used, sizeof(text) - used)) > 0)
		used += n;
	close(fd);
	frame_bytes(name, text, used);
}
