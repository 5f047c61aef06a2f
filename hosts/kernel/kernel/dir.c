/* SPDX-License-Identifier: MIT */
/*
 * dir.c - directories, files of names and numbers; and paths through them.
 *
 * An entry is 16 bytes, so 64 fit into a block and none crosses one. A free entry
 * is used again; where the first one may be is remembered while the directory is
 * in memory, so filling a directory does not look at all of it for every name.
 *
 * A directory that was removed is empty, "." and ".." included: a process whose
 * cwd it still is finds nothing there, and can put nothing there.
 *
 * Must stay true: a directory is locked while it is looked into, and let go of
 * before the next one on a path is locked, so ".." cannot deadlock.
 *
 * Read next: sysfile.c.
 */
#include "inode.h"

#include "bio.h"
#include "log.h"
#include "mem.h"
#include "print.h"
#include "proc.h"

int namecmp(const char *a, const char *b)
{
	return strncmp(a, b, DIRSIZ);
}

/* As the mount has checked, a directory is made of whole entries in direct order. */
static struct buf *dir_block(struct inode *dir, uint off)
{
	uint idx = off / BSIZE, block;
	struct buf *b;

	if (dir->d.type != T_DIR)
		panic("fs: inode %u is no directory", dir->c.number);
	if (idx < NDIRECT)
		return bread(dir->d.addrs[idx]);
	b = bread(dir->d.addrs[NDIRECT]);
	block = ((uint *)b->data)[idx - NDIRECT];
	brelse(b);
	return bread(block);
}

/*
 * Go through the entries from @off on, until @is_it says yes. Return: the offset
 * of that one; dir->d.size when there was none.
 */
static uint scan(struct inode *dir, uint off,
		 bool (*is_it)(const struct dirent *e, const char *name), const char *name,
		 u32 *inum)
{
	while (off < dir->d.size) {
		struct buf *b = dir_block(dir, off);
		const struct dirent *e = (void *)(b->data + off % BSIZE);
		uint end = off - off % BSIZE + BSIZE;

		for (; off < end && off < dir->d.size; e++, off += sizeof(*e)) {
			if (is_it(e, name)) {
				*inum = e->inum;
				brelse(b);
				return off;
			}
		}
		brelse(b);
	}
	return dir->d.size;
}

static bool is_called(const struct dirent *e, const char *name)
{
	return e->inum && e->name[0] == name[0] && !namecmp(e->name, name);
}

static bool is_free(const struct dirent *e, const char *name)
{
	return !e->inum;
}

static bool is_a_child(const struct dirent *e, const char *name)
{
	return e->inum && namecmp(e->name, ".") && namecmp(e->name, "..");
}

struct inode *dirlookup(struct inode *dir, const char *name, uint *off)
{
	u32 inum;
	uint at = scan(dir, 0, is_called, name, &inum);

	if (at == dir->d.size)
		return NULL;
	if (off)
		*off = at;
	return iget(inum);
}

int dirlink(struct inode *dir, const char *name, u32 inum)
{
	struct dirent e = { .inum = inum };
	u32 other;
	uint at;

	if (!dir->d.nlink || scan(dir, 0, is_called, name, &other) < dir->d.size)
		return -1;
	at = scan(dir, dir->dir_hint, is_free, NULL, &other);
	dir->dir_hint = at;
	for (u32 i = 0; i < DIRSIZ && name[i]; i++)
		e.name[i] = name[i];
	if (writei(dir, false, (uint64)&e, at, sizeof(e)) != sizeof(e))
		return -1;
	dir->dir_hint = at + sizeof(e);
	return 0;
}

void dirunlink(struct inode *dir, uint off)
{
	struct buf *b = dir_block(dir, off);

	memset(b->data + off % BSIZE, 0, sizeof(struct dirent));
	log_write(b);
	brelse(b);
	if (off < dir->dir_hint)
		dir->dir_hint = off;
}

bool dir_is_empty(struct inode *dir)
{
	u32 inum;

	return scan(dir, 0, is_a_child, NULL, &inum) == dir->d.size;
}

/*
 * Take the first name off *@path, which is left at what follows. Slashes before
 * it and after it do not matter. Return: false when there was no name.
 */
static bool next_name(const char **path, char name[DIRSIZ])
{
	const char *at = *path;
	u32 n = 0;

	while (*at == '/')
		at++;
	if (!*at)
		return false;
	memset(name, 0, DIRSIZ);
	for (; *at && *at != '/'; at++) {
		if (n < DIRSIZ)
			name[n++] = *at;
	}
	while (*at == '/')
		at++;
	*path = at;
	return true;
}

/* Where a path begins. Return: a reference, or NULL. */
static struct inode *start_of(const char *path)
{
	struct proc *p = myproc();

	return *path == '/' || !p->cwd ? iget(ROOTINO) : idup(p->cwd);
}

/* Follow @path, to the end or to the directory of its last name. */
static struct inode *walk(const char *path, bool is_parent, char name[DIRSIZ])
{
	struct inode *ip, *next;

	if (!*path)
		return NULL;
	ip = start_of(path);
	while (ip && next_name(&path, name)) {
		ilock(ip);
		if (ip->d.type != T_DIR) {
			iunlockput(ip);
			return NULL;
		}
		if (is_parent && !*path) {
			iunlock(ip);
			return ip;
		}
		next = dirlookup(ip, name, NULL);
		iunlockput(ip);
		ip = next;
	}
	if (ip && is_parent) { /* "/" has no parent */
		iput(ip);
		return NULL;
	}
	return ip;
}

struct inode *namei(const char *path)
{
	char name[DIRSIZ];

	return walk(path, false, name);
}

struct inode *nameiparent(const char *path, char name[DIRSIZ])
{
	return walk(path, true, name);
}
