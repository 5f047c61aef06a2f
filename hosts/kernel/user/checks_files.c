/* SPDX-License-Identifier: MIT */
/*
 * checks_files.c - files, folders, links, descriptors, pipes.
 *
 * Read next: checks_limits.c, where each of these runs out.
 */
#include "kernel/types.h"
#include "kernel/param.h"
#include "kernel/stat.h"
#include "kernel/fcntl.h"
#include "kernel/file.h"
#include "kernel/fs.h"
#include "user/checks.h"
#include "user/user.h"

static void write_then_read(void)
{
	struct stat st;

	check_make_file("f", 5000);
	check_content("f", 5000);
	CHECK_EQUAL(stat("f", &st), 0);
	CHECK_EQUAL(st.type, T_FILE);
	CHECK_EQUAL(st.size, 5000);
	CHECK_EQUAL(st.nlink, 1);
	CHECK_EQUAL(unlink("f"), 0);
	CHECK_EQUAL(stat("f", &st), -1);
	CHECK_EQUAL(unlink("f"), -1);
}

/* Reading and writing overlap the borders of blocks in every way. */
static void odd_sizes(void)
{
	static char buffer[3 * BSIZE];
	static const int sizes[] = { 1, 3, BSIZE - 1, BSIZE, BSIZE + 1, 2 * BSIZE + 7 };
	int fd = open("f", O_CREATE | O_RDWR);

	CHECK(fd >= 0);
	for (int i = 0; i < 6; i++) {
		memset(buffer, 'a' + i, sizes[i]);
		CHECK_EQUAL(write(fd, buffer, sizes[i]), sizes[i]);
	}
	CHECK_EQUAL(close(fd), 0);
	fd = open("f", O_RDONLY);
	for (int i = 0; i < 6; i++) {
		CHECK_EQUAL(read(fd, buffer, sizes[i]), sizes[i]);
		for (int k = 0; k < sizes[i]; k++)
			CHECK(buffer[k] == 'a' + i);
	}
	CHECK_EQUAL(read(fd, buffer, 1), 0);
	CHECK_EQUAL(read(fd, buffer, 0), 0);
	CHECK_EQUAL(close(fd), 0);
	CHECK_EQUAL(unlink("f"), 0);
}

static void open_modes(void)
{
	char c;
	int fd;

	CHECK_EQUAL(open("f", O_RDONLY), -1);
	CHECK((fd = open("f", O_CREATE | O_WRONLY)) >= 0);
	CHECK_EQUAL(write(fd, "abc", 3), 3);
	CHECK_EQUAL(read(fd, &c, 1), -1);
	close(fd);
	CHECK((fd = open("f", O_RDONLY)) >= 0);
	CHECK_EQUAL(write(fd, "x", 1), -1);
	CHECK_EQUAL(read(fd, &c, 1), 1);
	CHECK(c == 'a');
	close(fd);
	CHECK((fd = open("f", O_RDWR | O_TRUNC)) >= 0);
	CHECK_EQUAL(read(fd, &c, 1), 0);
	CHECK_EQUAL(write(fd, "d", 1), 1);
	close(fd);
	CHECK((fd = open("f", O_CREATE | O_RDONLY)) >= 0);
	CHECK_EQUAL(read(fd, &c, 1), 1);
	CHECK(c == 'd');
	close(fd);
	CHECK_EQUAL(unlink("f"), 0);
}

static void append_mode(void)
{
	int one = open("f", O_CREATE | O_WRONLY | O_APPEND);
	int two = open("f", O_WRONLY | O_APPEND);

	CHECK(one >= 0 && two >= 0);
	for (int i = 0; i < 10; i++)
		CHECK_EQUAL(write(i % 2 ? one : two, i % 2 ? "b" : "a", 1), 1);
	close(one);
	close(two);
	one = open("f", O_RDONLY);
	for (int i = 0; i < 10; i++) {
		char c;

		CHECK_EQUAL(read(one, &c, 1), 1);
		CHECK(c == (i % 2 ? 'b' : 'a'));
	}
	close(one);
	CHECK_EQUAL(unlink("f"), 0);
}

/* Another descriptor truncates: the old offset is then past the end. */
static void write_past_the_end(void)
{
	int one = open("f", O_CREATE | O_RDWR), two;
	char c;

	CHECK_EQUAL(write(one, "abcd", 4), 4);
	two = open("f", O_WRONLY | O_TRUNC);
	CHECK(two >= 0);
	CHECK_EQUAL(write(one, "x", 1), -1);
	CHECK_EQUAL(read(one, &c, 1), 0);
	CHECK_EQUAL(write(two, "xy", 2), 2);
	close(one);
	close(two);
	check_make_file("f", 10);
	CHECK_EQUAL(unlink("f"), 0);
}

/* dup() and fork() share the offset, two open()s do not. */
static void shared_offsets(void)
{
	char c;
	int fd, same, other;

	fd = open("f", O_CREATE | O_RDWR);
	CHECK_EQUAL(write(fd, "abcdef", 6), 6);
	close(fd);
	fd = open("f", O_RDONLY);
	same = dup(fd);
	other = open("f", O_RDONLY);
	CHECK_EQUAL(read(fd, &c, 1), 1);
	CHECK_EQUAL(read(same, &c, 1), 1);
	CHECK(c == 'b');
	if (check_fork() == 0) {
		CHECK_EQUAL(read(fd, &c, 1), 1);
		CHECK(c == 'c');
		exit(0);
	}
	CHECK_EQUAL(check_wait(), 0);
	CHECK_EQUAL(read(same, &c, 1), 1);
	CHECK(c == 'd');
	CHECK_EQUAL(read(other, &c, 1), 1);
	CHECK(c == 'a');
	CHECK_EQUAL(unlink("f"), 0);
}

/* A file without a name lives until the last descriptor is closed. */
static void unlinked_but_open(void)
{
	int fd = open("f", O_CREATE | O_RDWR), again;
	char c;

	CHECK_EQUAL(write(fd, "abc", 3), 3);
	CHECK_EQUAL(unlink("f"), 0);
	CHECK_EQUAL(open("f", O_RDONLY), -1);
	CHECK_EQUAL(write(fd, "d", 1), 1);
	again = open("f", O_CREATE | O_RDWR); /* a new file of that name */
	CHECK_EQUAL(read(again, &c, 1), 0);
	close(again);
	close(fd);
	CHECK_EQUAL(unlink("f"), 0);
}

static void links(void)
{
	struct stat st;

	check_make_file("a", 100);
	CHECK_EQUAL(link("a", "b"), 0);
	CHECK_EQUAL(stat("b", &st), 0);
	CHECK_EQUAL(st.nlink, 2);
	CHECK_EQUAL(link("a", "b"), -1);
	CHECK_EQUAL(link("none", "c"), -1);
	CHECK_EQUAL(unlink("a"), 0);
	check_content("b", 100);
	CHECK_EQUAL(link("b", "/nofolder/c"), -1);
	CHECK_EQUAL(stat("b", &st), 0);
	CHECK_EQUAL(st.nlink, 1);
	CHECK_EQUAL(unlink("b"), 0);
	CHECK_EQUAL(mkdir("d"), 0);
	CHECK_EQUAL(link("d", "e"), -1); /* a folder has one name */
	CHECK_EQUAL(link(".", "e"), -1);
	CHECK_EQUAL(unlink("d"), 0);
}

static void folders(void)
{
	struct stat st;

	CHECK_EQUAL(mkdir("d"), 0);
	CHECK_EQUAL(mkdir("d"), -1);
	CHECK_EQUAL(mkdir("none/d"), -1);
	check_make_file("d/f", 3000);
	CHECK_EQUAL(mkdir("d/f"), -1);
	CHECK_EQUAL(mkdir("d/f/g"), -1);
	CHECK_EQUAL(unlink("d"), -1); /* it is not empty */
	CHECK_EQUAL(unlink("d/."), -1);
	CHECK_EQUAL(unlink("d/.."), -1);
	CHECK_EQUAL(unlink("/"), -1);
	CHECK_EQUAL(open("d", O_RDWR), -1);
	CHECK_EQUAL(open("d", O_WRONLY), -1);
	CHECK_EQUAL(open("d", O_CREATE | O_RDONLY), -1);
	CHECK_EQUAL(open("d/f/f", O_RDONLY), -1);
	CHECK_EQUAL(chdir("d/f"), -1);
	CHECK_EQUAL(chdir("d"), 0);
	check_content("f", 3000);
	check_content("../d/./f", 3000);
	check_content("..//d///f", 3000);
	CHECK_EQUAL(unlink("f"), 0);
	CHECK_EQUAL(chdir(".."), 0);
	CHECK_EQUAL(stat("d", &st), 0);
	CHECK_EQUAL(st.type, T_DIR);
	CHECK_EQUAL(unlink("d"), 0);
	CHECK_EQUAL(chdir("d"), -1);
	CHECK_EQUAL(chdir("/.."), 0); /* / is its own parent */
}

/* A process may stand in a folder that has no name any more. */
static void current_folder_removed(void)
{
	CHECK_EQUAL(mkdir("d"), 0);
	CHECK_EQUAL(chdir("d"), 0);
	CHECK_EQUAL(unlink("../d"), 0);
	CHECK_EQUAL(open("f", O_CREATE | O_RDWR), -1);
	CHECK_EQUAL(mkdir("e"), -1);
	CHECK_EQUAL(chdir("/"), 0);
}

/* A number that was given back is the next to be given out, the lowest first. */
static void lowest_inode_first(void)
{
	struct stat first, second, again;

	check_make_file("a", 1);
	check_make_file("b", 1);
	CHECK_EQUAL(stat("a", &first), 0);
	CHECK_EQUAL(stat("b", &second), 0);
	CHECK(first.ino < second.ino);
	for (int i = 0; i < 50; i++) {
		CHECK_EQUAL(unlink("a"), 0);
		check_make_file("a", 1);
		CHECK_EQUAL(stat("a", &again), 0);
		CHECK_EQUAL(again.ino, first.ino);
	}
	CHECK_EQUAL(unlink("a"), 0);
	CHECK_EQUAL(unlink("b"), 0);
}

static void names_are_cut(void)
{
	int fd = open("12345678901234567", O_CREATE | O_RDWR);
	struct stat a, b;

	CHECK(fd >= 0);
	close(fd);
	CHECK_EQUAL(stat("12345678901234", &a), 0);
	CHECK_EQUAL(stat("12345678901234xyz", &b), 0);
	CHECK_EQUAL(a.ino, b.ino);
	CHECK_EQUAL(stat("1234567890123", &a), -1);
	CHECK_EQUAL(unlink("12345678901234"), 0);
}

static void long_paths(void)
{
	char path[MAXPATH + 64];

	for (uint i = 0; i < sizeof(path) - 1; i++)
		path[i] = i % 2 ? '/' : '.';
	path[sizeof(path) - 1] = 0;
	CHECK_EQUAL(open(path, O_RDONLY), -1);
	CHECK_EQUAL(chdir(path), -1);
	CHECK_EQUAL(mkdir(path), -1);
	CHECK_EQUAL(unlink(path), -1);
	CHECK_EQUAL(link(path, "a"), -1);
	path[MAXPATH] = 0; /* one more than fits with its 0 */
	CHECK_EQUAL(chdir(path), -1);
	path[MAXPATH - 1] = 0;
	CHECK_EQUAL(chdir(path), 0);
	CHECK_EQUAL(open("", O_CREATE | O_RDWR), -1);
}

/* A folder of many entries keeps all of them, and gives the room back. */
static void many_entries(void)
{
	enum { FILES = 150 };
	char name[16];
	struct stat st;
	uint size;

	check_make_file("f", 1);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < FILES; i++) {
			snprintf(name, sizeof(name), "n%d", i);
			CHECK_EQUAL(link("f", name), 0);
		}
		CHECK_EQUAL(stat(".", &st), 0);
		if (round)
			CHECK_EQUAL(st.size, size);
		size = st.size;
		for (int i = FILES - 1; i >= 0; i--) {
			snprintf(name, sizeof(name), "n%d", i);
			CHECK_EQUAL(unlink(name), 0);
		}
	}
	CHECK_EQUAL(unlink("f"), 0);
}

static void descriptors(void)
{
	int fds[2], fd;

	CHECK_EQUAL(close(3), -1);
	fd = dup(0);
	CHECK_EQUAL(fd, 3); /* the lowest that is free */
	CHECK_EQUAL(dup(1), 4);
	CHECK_EQUAL(close(3), 0);
	CHECK_EQUAL(close(3), -1);
	CHECK_EQUAL(pipe(fds), 0);
	CHECK_EQUAL(fds[0], 3);
	CHECK_EQUAL(fds[1], 5);
	CHECK_EQUAL(dup(99), -1);
	CHECK_EQUAL(dup(-1), -1);
	CHECK_EQUAL(dup(NOFILE), -1);
	CHECK_EQUAL(close(-1), -1);
	CHECK_EQUAL(close(0x7fffffff), -1);
	CHECK_EQUAL(read(fds[1], &fd, 1), -1);
	CHECK_EQUAL(write(fds[0], &fd, 1), -1);
	CHECK_EQUAL(read(12, &fd, 1), -1);
	CHECK_EQUAL(write(-5, &fd, 1), -1);
	CHECK_EQUAL(read(fds[0], &fd, -1), -1);
	CHECK_EQUAL(write(fds[1], &fd, -1), -1);
}

static void pipe_order_and_end(void)
{
	enum { BYTES = 20000 };
	static uchar buffer[700];
	int fds[2], total = 0, now;

	CHECK_EQUAL(pipe(fds), 0);
	if (check_fork() == 0) {
		close(fds[0]);
		for (int sent = 0; sent < BYTES; sent += now) {
			now = BYTES - sent < 677 ? BYTES - sent : 677;
			for (int i = 0; i < now; i++)
				buffer[i] = sent + i;
			CHECK_EQUAL(write(fds[1], buffer, now), now);
		}
		exit(0);
	}
	close(fds[1]);
	while ((now = read(fds[0], buffer, 1 + total % 500)) > 0) {
		for (int i = 0; i < now; i++)
			CHECK(buffer[i] == (uchar)(total + i));
		total += now;
	}
	CHECK_EQUAL(now, 0);
	CHECK_EQUAL(total, BYTES);
	CHECK_EQUAL(check_wait(), 0);
}

static void pipe_without_reader(void)
{
	static char buffer[600];
	int fds[2];

	CHECK_EQUAL(pipe(fds), 0);
	close(fds[0]);
	CHECK_EQUAL(write(fds[1], "x", 1), -1);
	close(fds[1]);
	/* The reader goes while the writer waits for room. */
	CHECK_EQUAL(pipe(fds), 0);
	if (check_fork() == 0) {
		close(fds[1]);
		sleep(2);
		exit(0);
	}
	close(fds[0]);
	CHECK_EQUAL(write(fds[1], buffer, sizeof(buffer)) < (int)sizeof(buffer), 1);
	CHECK_EQUAL(check_wait(), 0);
}

static void devices(void)
{
	struct stat st;
	char c = 'x';
	int fd;

	CHECK_EQUAL(mknod("null", NULLDEV, 0), 0);
	CHECK_EQUAL(mknod("null", NULLDEV, 0), -1);
	CHECK((fd = open("null", O_RDWR)) >= 0);
	CHECK_EQUAL(fstat(fd, &st), 0);
	CHECK_EQUAL(st.type, T_DEVICE);
	CHECK_EQUAL(write(fd, "abc", 3), 3);
	CHECK_EQUAL(read(fd, &c, 1), 0);
	close(fd);
	CHECK_EQUAL(unlink("null"), 0);
	/* Numbers without a driver: the file exists, and cannot be used. */
	for (int major = -2; major < 40; major++) {
		if (major >= CONSOLE && major <= KEYS)
			continue;
		CHECK_EQUAL(mknod("d", major, 0), 0);
		fd = open("d", O_RDWR);
		if (fd >= 0) {
			CHECK_EQUAL(read(fd, &c, 1), -1);
			CHECK_EQUAL(write(fd, &c, 1), -1);
			close(fd);
		}
		CHECK_EQUAL(unlink("d"), 0);
	}
	CHECK_EQUAL(open("d", O_RDONLY), -1);
	CHECK_EQUAL(open("d", O_CREATE | 0x10000), -1);
}

/* Processes make, name and remove the same names; each call works or is -1. */
static void the_same_names_at_once(void)
{
	enum { CHILDREN = 4, ROUNDS = 40 };

	for (int child = 0; child < CHILDREN; child++) {
		unsigned long seed = child + 1;

		if (check_fork())
			continue;
		for (int i = 0; i < ROUNDS; i++) {
			char a[] = "f0", b[] = "f0";
			int fd;

			a[1] += check_random(&seed) % 4;
			b[1] += check_random(&seed) % 4;
			switch (check_random(&seed) % 4) {
			case 0:
				fd = open(a, O_CREATE | O_RDWR);
				if (fd >= 0) {
					write(fd, "0123456789", 10);
					close(fd);
				}
				break;
			case 1:
				link(a, b);
				break;
			case 2:
				mkdir(a);
				break;
			default:
				unlink(a);
			}
		}
		exit(0);
	}
	for (int child = 0; child < CHILDREN; child++)
		CHECK_EQUAL(check_wait(), 0);
	for (char name[] = "f0"; name[1] < '4'; name[1]++)
		unlink(name);
}

/* Each process in its own file: no bytes of one appear in another. */
static void own_files_at_once(void)
{
	enum { CHILDREN = 4 };

	for (int child = 0; child < CHILDREN; child++) {
		char name[] = "a";

		if (check_fork())
			continue;
		name[0] += child;
		for (int round = 0; round < 3; round++) {
			check_make_file(name, 10000 + child * 1111);
			check_content(name, 10000 + child * 1111);
			CHECK_EQUAL(unlink(name), 0);
		}
		exit(0);
	}
	for (int child = 0; child < CHILDREN; child++)
		CHECK_EQUAL(check_wait(), 0);
}

/* Writers with one offset: every byte of each write() arrives, in one piece. */
static void one_offset_at_once(void)
{
	enum { CHILDREN = 3, WRITES = 30, BYTES = 60 };
	int fd = open("f", O_CREATE | O_RDWR), counts[CHILDREN] = { 0 };
	char piece[BYTES];

	CHECK(fd >= 0);
	for (int child = 0; child < CHILDREN; child++) {
		if (check_fork())
			continue;
		memset(piece, 'a' + child, BYTES);
		for (int i = 0; i < WRITES; i++)
			CHECK_EQUAL(write(fd, piece, BYTES), BYTES);
		exit(0);
	}
	for (int child = 0; child < CHILDREN; child++)
		CHECK_EQUAL(check_wait(), 0);
	close(fd);
	fd = open("f", O_RDONLY);
	while (read(fd, piece, BYTES) == BYTES) {
		CHECK(piece[0] >= 'a' && piece[0] < 'a' + CHILDREN);
		counts[piece[0] - 'a']++;
		for (int i = 0; i < BYTES; i++)
			CHECK(piece[i] == piece[0]);
	}
	for (int child = 0; child < CHILDREN; child++)
		CHECK_EQUAL(counts[child], WRITES);
	CHECK_EQUAL(unlink("f"), 0);
}

static void sync_to_disk(void)
{
	int fd, fds[2];

	CHECK((fd = open("f", O_CREATE | O_RDWR)) >= 0);
	CHECK_EQUAL(fsync(fd), 0); /* nothing to do but its creation */
	CHECK_EQUAL(write(fd, "abc", 3), 3);
	CHECK_EQUAL(fsync(fd), 0);
	CHECK_EQUAL(fsync(fd), 0);
	CHECK_EQUAL(unlink("f"), 0);
	CHECK_EQUAL(fsync(fd), 0); /* the file has no name any more */
	close(fd);
	CHECK_EQUAL(fsync(fd), -1);
	CHECK_EQUAL(fsync(-1), -1);
	CHECK_EQUAL(fsync(NOFILE), -1);
	CHECK_EQUAL(pipe(fds), 0);
	CHECK_EQUAL(fsync(fds[0]), -1);
	CHECK_EQUAL(fsync(fds[1]), -1);
	close(fds[0]);
	close(fds[1]);
}

/* Commits meet operations that are under way, and each other. */
static void sync_at_once(void)
{
	enum { CHILDREN = 5, ROUNDS = 15 };
	char name[] = "f0";

	for (int child = 0; child < CHILDREN; child++) {
		if (check_fork())
			continue;
		name[1] = '0' + child;
		for (int i = 0; i < ROUNDS; i++) {
			int fd = open(name, O_CREATE | O_RDWR);

			if (fd < 0 || write(fd, name, 2) != 2 ||
			    (i % (child + 1) == 0 && fsync(fd) < 0) || close(fd) < 0 ||
			    unlink(name) < 0)
				exit(1);
		}
		exit(0);
	}
	for (int child = 0; child < CHILDREN; child++)
		CHECK_EQUAL(check_wait(), 0);
}

const struct check checks_files[] = {
	{ "write-then-read", write_then_read, 0 },
	{ "odd-sizes", odd_sizes, 0 },
	{ "open-modes", open_modes, 0 },
	{ "append-mode", append_mode, 0 },
	{ "write-past-the-end", write_past_the_end, 0 },
	{ "shared-offsets", shared_offsets, 0 },
	{ "unlinked-but-open", unlinked_but_open, 0 },
	{ "links", links, 0 },
	{ "folders", folders, 0 },
	{ "current-folder-removed", current_folder_removed, 0 },
	{ "lowest-inode-first", lowest_inode_first, CHECK_ALONE },
	{ "names-are-cut", names_are_cut, 0 },
	{ "long-paths", long_paths, 0 },
	{ "many-entries", many_entries, 0 },
	{ "descriptors", descriptors, 0 },
	{ "pipe-order-and-end", pipe_order_and_end, 0 },
	{ "pipe-without-reader", pipe_without_reader, 0 },
	{ "devices", devices, 0 },
	{ "the-same-names-at-once", the_same_names_at_once, 0 },
	{ "own-files-at-once", own_files_at_once, 0 },
	{ "one-offset-at-once", one_offset_at_once, 0 },
	{ "sync-to-disk", sync_to_disk, 0 },
	{ "sync-at-once", sync_at_once, 0 },
	{ 0, 0, 0 },
};
