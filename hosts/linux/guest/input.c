/* SPDX-License-Identifier: MIT */
/*
 * input.c - the way into the guest: one file that QEMU offers at two ports.
 *
 * A machine that goes on from a saved state has the memory that was saved, so
 * its job cannot lie there. QEMU's firmware configuration is a device, and what
 * it holds comes from the command line that the machine goes on with. It is read
 * through ports, without a driver: a directory of names and numbers, then what
 * was selected by its number, byte by byte.
 *
 * The file is a row of frames as in frame.c, one for each file to be made.
 *
 * Read next: init.c, the reader of the job.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/stat.h>

#include "guest.h"

#define SELECT_PORT 0x510
#define DATA_PORT 0x511
#define DIRECTORY 0x19
#define ENTRIES_MAX 256
#define PATH_BYTES 4096
#define INPUT_NAME "opt/schedlab/input"
/* A panic device: a write stops the machine there (-action panic=pause). */
#define STOP_PORT 0x505

/* Of the directory; its numbers are big-endian. */
struct entry {
	u32 bytes;
	u16 select;
	u16 reserved;
	char name[56];
};

void input_init(void)
{
	if (ioperm(SELECT_PORT, 2, 1) || ioperm(STOP_PORT, 1, 1))
		frame_text("fatal", "ports: %s", strerror(errno));
}

void input_stop_machine(void)
{
	outb(1, STOP_PORT);
}

static void read_port(void *to, u64 bytes)
{
	__asm__ volatile("rep insb" : "+D"(to), "+c"(bytes) : "d"((u16)DATA_PORT) : "memory");
}

/* Selects the file. Return: how many bytes it has; 0: there is none. */
static u64 select_input(void)
{
	struct entry entry;
	u32 left;

	outw(DIRECTORY, SELECT_PORT);
	read_port(&left, sizeof(left));
	left = be32toh(left);
	if (left > ENTRIES_MAX)
		return 0;
	while (left--) {
		read_port(&entry, sizeof(entry));
		if (strncmp(entry.name, INPUT_NAME, sizeof(entry.name)))
			continue;
		outw(be16toh(entry.select), SELECT_PORT);
		return be32toh(entry.bytes);
	}
	return 0;
}

void make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
}

static int write_file(char *path, const char *data, u64 bytes)
{
	FILE *file;

	make_folders(path);
	file = fopen(path, "w");
	if (!file)
		return -errno;
	if (fwrite(data, 1, bytes, file) != bytes) {
		fclose(file);
		return -ENOSPC;
	}
	/* Some are programs. */
	if (fchmod(fileno(file), 0755) || fclose(file))
		return -errno;
	return 0;
}

/* Makes the files of a row of frames. Return: 0, or -errno. */
static int unpack(const char *data, u64 bytes)
{
	const char *end = data + bytes;
	char path[PATH_BYTES];
	u64 file_bytes;
	int head_bytes;
	int failed;

	while (data < end) {
		/* The file ends with a 0, so that this cannot leave it. */
		if (sscanf(data, "%4095s %llu%n", path, &file_bytes, &head_bytes) != 2)
			return -EBADMSG;
		data += head_bytes + 1;
		if (file_bytes >= (u64)(end - data))
			return -EBADMSG;
		failed = write_file(path, data, file_bytes);
		if (failed)
			return failed;
		data += file_bytes + 1;
	}
	return 0;
}

void input_read(void)
{
	u64 bytes = select_input();
	char *data = malloc(bytes + 1);
	int failed;

	if (!bytes || !data) {
		frame_text("fatal", "the job: QEMU offers no file " INPUT_NAME);
		return;
	}
	read_port(data, bytes);
	data[bytes] = '\0';
	failed = unpack(data, bytes);
	if (failed)
		frame_text("fatal", "the job: %s", strerror(-failed));
	free(data);
}
