/* SPDX-License-Identifier: MIT */
/*
 * model.c - see model.h.
 */
#include "model.h"

#include <string.h>

#include "harness.h"

#include "../../../hosts/kernel/kernel/fcntl.h"
#include "../../../hosts/kernel/kernel/file.h"
#include "../../../hosts/kernel/kernel/param.h"
#include "../../../hosts/kernel/kernel/stat.h"

struct model model;

void m_init(int nr_procs)
{
	memset(&model, 0, sizeof(model));
	model.nodes[1] = (struct m_node){ .type = T_DIR, .nlink = 1, .refs = nr_procs };
	model.nodes[1].slots = calloc(M_NODES, sizeof(struct m_slot));
	model.nodes[1].nr_slots = 2;
	model.nodes[1].size = 2 * 16;
	for (int i = 0; i < 2; i++) {
		strcpy(model.nodes[1].slots[i].name, i ? ".." : ".");
		model.nodes[1].slots[i].node = 1;
	}
	for (int i = 0; i < nr_procs; i++)
		model.procs[i].cwd = 1;
}

static void drop(int node)
{
	struct m_node *n = &model.nodes[node];

	if (n->refs || n->nlink)
		return;
	free(n->data);
	free(n->slots);
	memset(n, 0, sizeof(*n));
}

static struct m_slot *find(int dir, const char *name)
{
	struct m_node *d = &model.nodes[dir];

	for (u32 i = 0; i < d->nr_slots; i++) {
		if (d->slots[i].node && !strcmp(d->slots[i].name, name))
			return &d->slots[i];
	}
	return NULL;
}

/* Split a path into names cut at 14. Return: how many; names point into @room. */
static int split(const char *path, char names[64][15])
{
	int nr = 0;

	while (*path) {
		const char *end = strchr(path, '/');
		size_t n = end ? (size_t)(end - path) : strlen(path);

		if (n) {
			memset(names[nr], 0, 15);
			memcpy(names[nr++], path, n < DIRSIZ ? n : DIRSIZ);
		}
		path += n + (end != NULL);
	}
	return nr;
}

/* Follow all names but the last @nr_left. Return: a node, 0: none. */
static int follow(const char *path, int nr_left, char last[15])
{
	char names[64][15];
	int nr = split(path, names);
	int at = path[0] == '/' ? 1 : model.procs[model.now].cwd;

	if (!path[0] || strlen(path) >= MAXPATH || nr < nr_left)
		return 0;
	for (int i = 0; i < nr - nr_left; i++) {
		struct m_slot *s = model.nodes[at].type == T_DIR ? find(at, names[i]) : NULL;

		if (!s)
			return 0;
		at = s->node;
	}
	if (nr_left) {
		strcpy(last, names[nr - 1]);
		if (model.nodes[at].type != T_DIR)
			return 0;
	}
	return at;
}

static int add(int dir, const char *name, int node)
{
	struct m_node *d = &model.nodes[dir];
	u32 i = 0;

	if (!d->nlink || find(dir, name))
		return -1;
	while (i < d->nr_slots && d->slots[i].node)
		i++;
	if (i == d->nr_slots)
		d->nr_slots++;
	d->size = d->nr_slots * 16;
	strcpy(d->slots[i].name, name);
	d->slots[i].node = node;
	return 0;
}

static int node_new(int type)
{
	for (int i = 2; i < M_NODES; i++) {
		if (!model.nodes[i].type) {
			model.nodes[i].type = type;
			return i;
		}
	}
	CHECK(false, "the model has too few nodes");
}

static int create(const char *path, int type, int major)
{
	char name[15];
	int dir = follow(path, 1, name), node;

	if (!dir || !model.nodes[dir].nlink || find(dir, name))
		return 0;
	node = node_new(type);
	model.nodes[node].nlink = 1;
	model.nodes[node].major = major;
	if (type == T_DIR) {
		model.nodes[node].slots = calloc(M_NODES, sizeof(struct m_slot));
		add(node, ".", node);
		add(node, "..", dir);
		model.nodes[dir].nlink++;
	}
	add(dir, name, node);
	return node;
}

int m_make(const char *path, int type, int major)
{
	if (major < -32768 || major > 32767)
		return -1;
	return create(path, type, major) ? 0 : -1;
}

static int fd_free(void)
{
	for (int fd = 0; fd < M_FDS; fd++) {
		if (!model.procs[model.now].fd[fd])
			return fd;
	}
	return -1;
}

struct m_file *m_file_of(int fd)
{
	if (fd < 0 || fd >= M_FDS || !model.procs[model.now].fd[fd])
		return NULL;
	return &model.files[model.procs[model.now].fd[fd] - 1];
}

static int file_new(int fd)
{
	for (int i = 0; i < M_FILES; i++) {
		if (!model.files[i].refs) {
			model.files[i] = (struct m_file){ .refs = 1 };
			model.procs[model.now].fd[fd] = i + 1;
			return i;
		}
	}
	CHECK(false, "the model has too few files");
}

int m_open(const char *path, int mode)
{
	int fd = fd_free(), node;
	char name[15];
	struct m_file *f;

	if (fd < 0 || (mode & ~(O_WRONLY | O_RDWR | O_CREATE | O_TRUNC | O_APPEND)))
		return -1;
	if (mode & O_CREATE) {
		int dir = follow(path, 1, name);
		struct m_slot *s = dir ? find(dir, name) : NULL;

		node = s ? s->node : create(path, T_FILE, 0);
		if (node && model.nodes[node].type == T_DIR)
			return -1;
	} else {
		node = follow(path, 0, NULL);
		if (node && model.nodes[node].type == T_DIR && mode != O_RDONLY)
			return -1;
	}
	if (!node)
		return -1;
	if (model.nodes[node].type == T_DEVICE &&
	    (model.nodes[node].major < 0 || model.nodes[node].major >= NDEV))
		return -1;
	if ((mode & O_TRUNC) && model.nodes[node].type == T_FILE)
		model.nodes[node].size = 0;
	f = &model.files[file_new(fd)];
	f->node = node;
	f->readable = !(mode & O_WRONLY);
	f->writable = mode & (O_WRONLY | O_RDWR);
	f->append = mode & O_APPEND;
	model.nodes[node].refs++;
	return fd;
}

int m_close(int fd)
{
	struct m_file *f = m_file_of(fd);

	if (!f)
		return -1;
	model.procs[model.now].fd[fd] = 0;
	if (--f->refs)
		return 0;
	if (f->pipe) {
		f->pipe->readers -= f->readable;
		f->pipe->writers -= f->writable;
		if (!f->pipe->readers && !f->pipe->writers)
			free(f->pipe);
	} else {
		model.nodes[f->node].refs--;
		drop(f->node);
	}
	return 0;
}

int m_dup(int fd)
{
	int new = fd_free();

	if (!m_file_of(fd) || new < 0)
		return -1;
	m_file_of(fd)->refs++;
	model.procs[model.now].fd[new] = model.procs[model.now].fd[fd];
	return new;
}

int m_pipe(int fd[2])
{
	struct m_pipe *p;
	int free_fds = 0;

	for (int i = 0; i < M_FDS; i++)
		free_fds += !model.procs[model.now].fd[i];
	if (free_fds < 2)
		return -1;
	p = calloc(1, sizeof(*p));
	p->readers = p->writers = 1;
	for (int i = 0; i < 2; i++) {
		struct m_file *f;

		fd[i] = fd_free();
		f = &model.files[file_new(fd[i])];
		f->pipe = p;
		f->readable = i == 0;
		f->writable = i == 1;
	}
	return 0;
}

int m_link(const char *old, const char *new)
{
	int node = follow(old, 0, NULL), dir;
	char name[15];

	if (!node || model.nodes[node].type == T_DIR)
		return -1;
	dir = follow(new, 1, name);
	if (!dir || add(dir, name, node) < 0)
		return -1;
	model.nodes[node].nlink++;
	return 0;
}

int m_unlink(const char *path)
{
	char name[15];
	int dir = follow(path, 1, name), node;
	struct m_slot *s = dir ? find(dir, name) : NULL;

	if (!s || !strcmp(name, ".") || !strcmp(name, ".."))
		return -1;
	node = s->node;
	if (model.nodes[node].type == T_DIR) {
		struct m_node *d = &model.nodes[node];

		for (u32 i = 2; i < d->nr_slots; i++) {
			if (d->slots[i].node)
				return -1;
		}
		d->nr_slots = d->size = 0;
		model.nodes[dir].nlink--;
	}
	s->node = 0;
	model.nodes[node].nlink--;
	drop(node);
	return 0;
}

int m_chdir(const char *path)
{
	int node = follow(path, 0, NULL), old = model.procs[model.now].cwd;

	if (!node || model.nodes[node].type != T_DIR)
		return -1;
	model.nodes[node].refs++;
	model.procs[model.now].cwd = node;
	model.nodes[old].refs--;
	drop(old);
	return 0;
}

/* A directory's bytes hold numbers that the model does not know; not read here. */
int m_read(int fd, u8 *to, int n)
{
	struct m_file *f = m_file_of(fd);
	struct m_node *node;
	u32 step;

	if (!f || !f->readable || n < 0)
		return -1;
	if (f->pipe) {
		step = (u32)n < f->pipe->nr ? (u32)n : f->pipe->nr;
		memcpy(to, f->pipe->data, step);
		memmove(f->pipe->data, f->pipe->data + step, f->pipe->nr - step);
		f->pipe->nr -= step;
		return step;
	}
	node = &model.nodes[f->node];
	if (node->type == T_DEVICE)
		return node->major == NULLDEV ? 0 : -1; /* the only one here */
	if (f->off >= node->size)
		return 0;
	step = node->size - f->off < (u32)n ? node->size - f->off : (u32)n;
	memcpy(to, node->data + f->off, step);
	f->off += step;
	return step;
}

void m_wrote(struct m_file *f, const u8 *from, int done)
{
	struct m_node *node = &model.nodes[f->node];

	if (!done)
		return; /* the offset may lie past the end of the file */
	if (!node->data)
		node->data = malloc(M_FILE_BYTES);
	memcpy(node->data + f->off, from, done);
	f->off += done;
	if (f->off > node->size)
		node->size = f->off;
}

int m_write(int fd, const u8 *from, int n)
{
	struct m_file *f = m_file_of(fd);
	struct m_node *node;

	if (!f || !f->writable || n < 0)
		return -1;
	if (f->pipe) {
		if (!f->pipe->readers)
			return n ? -1 : 0;
		memcpy(f->pipe->data + f->pipe->nr, from, n);
		f->pipe->nr += n;
		return n;
	}
	node = &model.nodes[f->node];
	if (node->type == T_DEVICE)
		return node->major == NULLDEV ? n : -1;
	if (f->append)
		f->off = node->size;
	if (f->off > node->size || f->off + (u32)n > M_FILE_BYTES)
		return -1;
	m_wrote(f, from, n);
	return n;
}

/* ---- the tree, as a number ----------------------------------------------- */

u64 hash_bytes(u64 hash, const void *from, u64 n)
{
	const u8 *at = from;

	for (u64 i = 0; i < n; i++)
		hash = (hash ^ at[i]) * 0x100000001b3ULL;
	return hash;
}

/*
 * Names are added up, not chained, so their order does not matter. What a name
 * stands for is its type, links and contents; a device also its number.
 */
static u64 hash_node(int node, u64 path)
{
	struct m_node *n = &model.nodes[node];
	u64 sum;

	sum = hash_bytes(path, &n->type, sizeof(n->type));
	sum = hash_bytes(sum, &n->nlink, sizeof(n->nlink));
	if (n->type == T_DEVICE)
		sum = hash_bytes(sum, &n->major, sizeof(n->major));
	if (n->type == T_FILE) {
		sum = hash_bytes(sum, &n->size, sizeof(n->size));
		sum = hash_bytes(sum, n->data, n->size);
	}
	for (u32 i = 2; n->type == T_DIR && i < n->nr_slots; i++) {
		if (n->slots[i].node)
			sum += hash_node(n->slots[i].node, hash_bytes(path * 31, n->slots[i].name,
								      strlen(n->slots[i].name)));
	}
	return sum;
}

u64 m_tree_hash(void)
{
	return hash_node(1, 1);
}
