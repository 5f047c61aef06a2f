/* SPDX-License-Identifier: MIT */
/*
 * random.c - random system calls, each compared with the model: its result, what
 * was read, and in the end every name and every byte.
 *
 * One thread plays several processes, which share files as after a fork. A full
 * disk is where kernel and model may differ: the model has no blocks. There a call
 * may fail if the disk is nearly full, and then must have changed nothing (or,
 * for a write, what its offset says).
 */
#include "harness.h"

#include <string.h>

#include "../../../hosts/kernel/kernel/fcntl.h"
#include "../../../hosts/kernel/kernel/file.h"
#include "../../../hosts/kernel/mkfs/fscheck.h"
#include "../../../hosts/kernel/kernel/inode.h"
#include "../../../hosts/kernel/kernel/log.h"
#include "model.h"

uint64 sys_dup(void), sys_read(void), sys_write(void), sys_close(void);
uint64 sys_fstat(void), sys_fsync(void), sys_link(void), sys_unlink(void);
uint64 sys_open(void), sys_mkdir(void), sys_mknod(void), sys_chdir(void);
uint64 sys_pipe(void);

#define PATHS (user_memory)		/* two paths, then data */
#define DATA (user_memory + 1024)
#define DATA_BYTES (USER_BYTES - 1024)

static struct proc *procs[M_PROCS];
static u32 nr_processes;
static u8 scratch[USER_BYTES];
static u32 nr_refused; /* calls that a full disk made fail */

/* Few names, so that they meet; some too long, some with an odd path. */
static void random_path(char *to)
{
	static const char *const names[] = {
		"a",  "b", "c", "dir", "sub", "f", "fourteen_chars", "fourteen_chars_and_more",
		"..", ".", "g", "h",
	};
	u32 depth = 1 + random_below(3);

	*to = 0;
	if (random_below(40) == 0)
		return; /* the empty path */
	if (random_below(2))
		strcat(to, "/");
	if (random_below(60) == 0) {
		memset(to, 'x', 200); /* too long a path */
		to[200] = 0;
		return;
	}
	for (u32 i = 0; i < depth; i++) {
		strcat(to, names[random_below(12)]);
		if (i + 1 < depth || random_below(8) == 0)
			strcat(to, random_below(10) ? "/" : "//");
	}
}

static char *path_at(u32 i)
{
	return (char *)PATHS + i * 512;
}

/* Is there so little room that a call may fail for it? */
static bool is_tight(u32 nr_blocks)
{
	return nr_blocks_free() < nr_blocks + 3 || nr_inodes_free() == 0;
}

/*
 * The result of a call that makes something. Where the disk is full the model
 * must not do it either, so it is asked only when the kernel could.
 */
static bool was_refused(int result)
{
	if (result >= 0 || !is_tight(0))
		return false;
	nr_refused++;
	return true;
}

static void do_open(void)
{
	static const int modes[] = {
		O_RDONLY,
		O_WRONLY,
		O_RDWR,
		O_CREATE | O_RDWR,
		O_CREATE | O_WRONLY,
		O_CREATE | O_RDWR | O_TRUNC,
		O_RDWR | O_TRUNC,
		O_CREATE | O_RDWR | O_APPEND,
		O_CREATE | O_RDWR,
		O_CREATE | O_WRONLY | O_TRUNC,
		O_RDONLY | O_TRUNC,
		O_CREATE | 0x1000,
		-1,
	};
	int mode = modes[random_below(13)], result;

	random_path(path_at(0));
	result = syscall3(sys_open, (uint64)path_at(0), mode, 0);
	if (was_refused(result) && (mode & O_CREATE))
		return;
	CHECK(result == m_open(path_at(0), mode), "open(\"%s\", 0x%x) is %d", path_at(0), mode,
	      result);
}

static int random_fd(void)
{
	return (int)random_below(18) - 1;
}

static void do_close(void)
{
	int fd = random_fd(), result = syscall3(sys_close, fd, 0, 0);

	CHECK(result == m_close(fd), "close(%d) is %d", fd, result);
}

static void do_dup(void)
{
	int fd = random_fd(), result = syscall3(sys_dup, fd, 0, 0);

	CHECK(result == m_dup(fd), "dup(%d) is %d", fd, result);
}

static void do_read(void)
{
	int fd = random_fd(), n = random_below(random_below(3) ? 300 : 20000), result;
	struct m_file *f = m_file_of(fd);
	int expected;

	if (f && f->pipe && f->readable && !f->pipe->nr && f->pipe->writers)
		return; /* it would wait */
	if (f && !f->pipe && model.nodes[f->node].type == T_DIR)
		return;
	result = syscall3(sys_read, fd, (uint64)DATA, n);
	expected = m_read(fd, scratch, n);
	CHECK(result == expected, "read(%d, %d) is %d, not %d", fd, n, result, expected);
	CHECK(result <= 0 || !memcmp(scratch, DATA, result), "read(%d, %d) reads wrong bytes", fd,
	      n);
}

/* A write of the kernel fell short: learn from the file how far it came. */
static void adopt_short_write(int fd, struct m_file *f)
{
	struct file *real = fd_file(fd);
	u32 start = f->append ? model.nodes[f->node].size : f->off;

	CHECK(real->off >= start && real->off <= start + DATA_BYTES,
	      "a failed write moves the offset from %u to %u", start, real->off);
	f->off = start;
	m_wrote(f, DATA, real->off - start);
}

static void do_write(void)
{
	int fd = random_fd(), result, expected;
	int n = random_below(random_below(4) ? 3000 : DATA_BYTES);
	struct m_file *f = m_file_of(fd);

	if (f && f->pipe && f->writable) {
		u32 room = 512 - f->pipe->nr;

		if (!f->pipe->readers)
			room = 512;
		n = random_below(room + 1);
	}
	for (int i = 0; i < n; i++)
		DATA[i] = random_state >> i % 48;
	/* The crash test knows states between operations only, so one step each. */
	if (is_recorded && f && !f->pipe) {
		u32 off = f->append ? model.nodes[f->node].size : f->off;
		int step = WRITEI_BLOCKS * BSIZE - off % BSIZE;

		n = n < step ? n : step;
	}
	result = syscall3(sys_write, fd, (uint64)DATA, n);
	if (result < 0 && f && !f->pipe && f->writable && model.nodes[f->node].type == T_FILE &&
	    is_tight(WRITEI_BLOCKS + 2)) {
		nr_refused++;
		adopt_short_write(fd, f);
		return;
	}
	if (result < 0 && f && !f->pipe && f->writable && model.nodes[f->node].type == T_FILE &&
	    f->off <= model.nodes[f->node].size) {
		/* Too long a file: the steps that fit were done. */
		adopt_short_write(fd, f);
		CHECK(f->off + (u32)n > M_FILE_BYTES - (u32)DATA_BYTES, "write(%d, %d) at %u fails",
		      fd, n, f->off);
		return;
	}
	expected = m_write(fd, DATA, n);
	CHECK(result == expected, "write(%d, %d) is %d, not %d", fd, n, result, expected);
}

/* Addresses that are partly or wholly not the user's: -1, and nothing moves on. */
static void do_bad_address(void)
{
	int fd = random_fd();
	uint64 bad[] = { 0, 1, (uint64)-1, (uint64)user_memory - 1,
			 (uint64)user_memory + USER_BYTES };
	uint64 at = bad[random_below(5)];
	struct m_file *f = m_file_of(fd);
	int result;

	if (f && (f->pipe || model.nodes[f->node].type != T_FILE))
		return;
	switch (random_below(4)) {
	case 0:
		result = syscall3(sys_read, fd, at, 10);
		if (f && f->readable && model.nodes[f->node].type == T_FILE &&
		    f->off >= model.nodes[f->node].size)
			CHECK(result == 0, "read at the end is %d", result);
		else
			CHECK(result == -1, "read(%d, bad) is %d", fd, result);
		break;
	case 1:
		result = syscall3(sys_write, fd, at, 10);
		CHECK(result == -1, "write(%d, bad) is %d", fd, result);
		if (f && f->writable && f->append && model.nodes[f->node].type == T_FILE)
			f->off = model.nodes[f->node].size;
		break;
	case 2:
		CHECK((int)syscall3(sys_open, at, O_CREATE | O_RDWR, 0) == -1, "open(bad)");
		break;
	case 3:
		CHECK((int)syscall3(sys_fstat, fd, at, 0) == -1, "fstat(bad)");
		break;
	}
}

static void do_fstat(void)
{
	int fd = random_fd();
	struct m_file *f = m_file_of(fd);
	struct stat *st = (struct stat *)DATA;
	int result = syscall3(sys_fstat, fd, (uint64)st, 0);
	struct m_node *n;

	CHECK(result == (f && !f->pipe ? 0 : -1), "fstat(%d) is %d", fd, result);
	if (result < 0)
		return;
	n = &model.nodes[f->node];
	CHECK(st->type == n->type && st->nlink == n->nlink && st->size == n->size,
	      "fstat(%d): type %d nlink %d size %lu, not %d %d %u", fd, st->type, st->nlink,
	      st->size, n->type, n->nlink, n->size);
}

static void do_names(u32 what)
{
	int result, major = random_below(5) ? (int)random_below(14) - 2 : 65537;

	random_path(path_at(0));
	random_path(path_at(1));
	switch (what) {
	case 0:
		result = syscall3(sys_link, (uint64)path_at(0), (uint64)path_at(1), 0);
		if (!was_refused(result))
			CHECK(result == m_link(path_at(0), path_at(1)),
			      "link(\"%s\", \"%s\") is %d", path_at(0), path_at(1), result);
		break;
	case 1:
		result = syscall3(sys_unlink, (uint64)path_at(0), 0, 0);
		CHECK(result == m_unlink(path_at(0)), "unlink(\"%s\") is %d", path_at(0), result);
		break;
	case 2:
		result = syscall3(sys_mkdir, (uint64)path_at(0), 0, 0);
		if (!was_refused(result))
			CHECK(result == m_make(path_at(0), T_DIR, 0), "mkdir(\"%s\") is %d",
			      path_at(0), result);
		break;
	case 3:
		result = syscall3(sys_mknod, (uint64)path_at(0), major, 7);
		if (!was_refused(result))
			CHECK(result == m_make(path_at(0), T_DEVICE, major), "mknod(\"%s\") is %d",
			      path_at(0), result);
		break;
	case 4:
		result = syscall3(sys_chdir, (uint64)path_at(0), 0, 0);
		CHECK(result == m_chdir(path_at(0)), "chdir(\"%s\") is %d", path_at(0), result);
		break;
	}
}

static void do_pipe(void)
{
	int *fd = (int *)DATA, expected[2];
	int result = syscall3(sys_pipe, (uint64)fd, 0, 0);

	CHECK(result == m_pipe(expected), "pipe() is %d", result);
	CHECK(result < 0 || (fd[0] == expected[0] && fd[1] == expected[1]),
	      "pipe() gives %d and %d", fd[0], fd[1]);
}

/* As after a fork: another process gets all open files of this one. */
static void do_share(void)
{
	u32 other = random_below(nr_processes);
	int now = model.now;

	if (other == (u32)now)
		return;
	for (int fd = 0; fd < M_FDS; fd++) {
		model.now = other;
		current = procs[other];
		if (m_file_of(fd)) {
			syscall3(sys_close, fd, 0, 0);
			m_close(fd);
		}
		model.now = now;
		if (m_file_of(fd)) {
			model.procs[other].fd[fd] = model.procs[now].fd[fd];
			m_file_of(fd)->refs++;
			procs[other]->ofile[fd] = filedup(procs[now]->ofile[fd]);
		}
	}
	current = procs[now];
}

static void one_op(void)
{
	u32 pick = random_below(100);

	model.now = random_below(nr_processes);
	current = procs[model.now];
	if (pick < 18)
		do_open();
	else if (pick < 30)
		do_close();
	else if (pick < 34)
		do_dup();
	else if (pick < 46)
		do_read();
	else if (pick < 66)
		do_write();
	else if (pick < 70)
		do_fstat();
	else if (pick < 74)
		do_bad_address();
	else if (pick < 76)
		do_pipe();
	else if (pick < 78)
		do_share();
	else if (pick < 82)
		timers_run(random_below(400) * 1000000ULL);
	else if (pick < 85)
		for (u32 i = random_below(8); i && disk_step(); i--)
			;
	else
		do_names(pick < 88 ? 0 : pick < 92 ? 1 : pick < 96 ? 2 : pick < 97 ? 3 : 4);
}

/* Every open file has the size and the links it should have, at any time. */
static void check_open_files(u32 op)
{
	for (u32 i = 0; i < nr_processes; i++) {
		for (int fd = 0; fd < M_FDS; fd++) {
			struct m_file *f = model.procs[i].fd[fd] ?
						   &model.files[model.procs[i].fd[fd] - 1] :
						   NULL;
			struct inode *ip = f && !f->pipe ? procs[i]->ofile[fd]->ip : NULL;
			struct m_node *n = ip ? &model.nodes[f->node] : NULL;

			CHECK(!n || (ip->c.is_valid && ip->d.size == n->size &&
				     ip->d.nlink == n->nlink && ip->d.type == n->type),
			      "operation %u, process %u, file %d: type %d nlink %d size %u, "
			      "not %d %d %u",
			      op, i, fd, ip->d.type, ip->d.nlink, ip->d.size, n->type, n->nlink,
			      n->size);
		}
	}
}

void random_begin(u32 nr_procs)
{
	nr_processes = nr_procs;
	m_init(nr_procs);
	for (u32 i = 0; i < nr_procs; i++) {
		procs[i] = proc_new();
		current = procs[i];
		procs[i]->cwd = namei("/");
	}
}

void random_ops(u32 nr, void (*after_each)(u32 op))
{
	for (u32 op = 0; op < nr; op++) {
		ops_started = op + 1;
		one_op();
		check_open_files(op);
		if (after_each)
			after_each(op + 1);
	}
}

static void remove_all(const char *path)
{
	char (*names)[160] = calloc(M_NODES, 160);
	int node = 1, nr = 0;

	/* The model knows what is there. */
	for (const char *at = path; *at;) {
		u32 i = 0;
		const char *end = strchr(at, '/');
		size_t n = end ? (size_t)(end - at) : strlen(at);

		while (strncmp(model.nodes[node].slots[i].name, at, n) ||
		       model.nodes[node].slots[i].name[n] || !model.nodes[node].slots[i].node)
			i++;
		node = model.nodes[node].slots[i].node;
		at += n + (end != NULL);
	}
	for (u32 i = 2; i < model.nodes[node].nr_slots; i++) {
		struct m_slot *s = &model.nodes[node].slots[i];

		if (s->node)
			snprintf(names[nr++], 160, "%s%s%s", path, *path ? "/" : "", s->name);
	}
	while (nr--) {
		char *name = names[nr];

		strcpy(path_at(0), name);
		if ((int)syscall3(sys_unlink, (uint64)path_at(0), 0, 0) < 0) {
			remove_all(name);
			strcpy(path_at(0), name);
			CHECK((int)syscall3(sys_unlink, (uint64)path_at(0), 0, 0) == 0,
			      "unlink(\"%s\") fails", name);
		}
		CHECK(m_unlink(path_at(0)) == 0, "the model cannot unlink \"%s\"", name);
	}
	free(names);
}

void random_end(void)
{
	for (u32 i = 0; i < nr_processes; i++) {
		model.now = i;
		current = procs[i];
		for (int fd = 0; fd < M_FDS; fd++)
			CHECK((int)syscall3(sys_close, fd, 0, 0) == m_close(fd), "close");
		strcpy(path_at(0), "/");
		CHECK((int)syscall3(sys_chdir, (uint64)path_at(0), 0, 0) == m_chdir("/"),
		      "chdir(\"/\") fails");
	}
	model.now = 0;
	current = procs[0];
	remove_all("");
}

void run_random(u32 nr_ops, u32 nr_blocks)
{
	u8 *image = calloc(nr_blocks, BSIZE);
	u32 blocks, inodes;

	format(image, nr_blocks, 64, 1 + LOG_BLOCKS_MAX);
	disk_use(image, nr_blocks);
	CHECK(fs_init() == 0, "an empty file system is refused");
	random_begin(3);
	blocks = nr_blocks_free();
	inodes = nr_inodes_free();
	for (u32 round = 0; round < 10; round++) {
		random_ops(nr_ops / 10, NULL);
		CHECK(kernel_tree_hash() == m_tree_hash(), "the trees differ");
		fs_sync();
		check_disk("after a round");
	}
	random_end();
	fs_sync();
	check_disk("at the end");
	/* The root keeps the blocks that its entries once needed; it began with one. */
	blocks -= (model.nodes[1].size - 1) / BSIZE;
	CHECK(nr_blocks_free() == blocks, "%d blocks are lost", (int)(blocks - nr_blocks_free()));
	CHECK(nr_inodes_free() == inodes, "%u inodes are lost", inodes - nr_inodes_free());
	CHECK(nr_inodes_in_use() == 1, "%u inodes are in use", nr_inodes_in_use());
	CHECK(nr_files_open() == 0, "%u files are open", nr_files_open());
	printf("random: %u operations, %u refused by a full disk\n", nr_ops, nr_refused);
}
