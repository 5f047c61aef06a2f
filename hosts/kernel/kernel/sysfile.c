/* SPDX-License-Identifier: MIT */
/*
 * sysfile.c - the system calls on files: arguments are checked here.
 *
 * What any of them returns for a bad descriptor, address, path or range, and when
 * files, inodes, blocks or memory are used up, is -1; then nothing is left over.
 *
 * Read next: file.c.
 */
#include "fcntl.h"
#include "file.h"
#include "inode.h"
#include "mem.h"
#include "proc.h"
#include "sysarg.h"

#define NLINK_MAX 32767
#define MODE_BITS (O_WRONLY | O_RDWR | O_CREATE | O_TRUNC | O_APPEND)

struct file *fd_file(int fd)
{
	return fd >= 0 && fd < NOFILE ? myproc()->ofile[fd] : NULL;
}

int fdalloc(struct file *f)
{
	struct proc *p = myproc();

	for (int fd = 0; fd < NOFILE; fd++) {
		if (!p->ofile[fd]) {
			p->ofile[fd] = f;
			return fd;
		}
	}
	return -1;
}

uint64 sys_dup(void)
{
	struct file *f = fd_file(arg_int(0));
	int fd = f ? fdalloc(f) : -1;

	if (fd < 0)
		return SYS_ERROR;
	filedup(f);
	return fd;
}

uint64 sys_read(void)
{
	struct file *f = fd_file(arg_int(0));

	if (!f || !f->readable || !f->ops->read || arg_int(2) < 0)
		return SYS_ERROR;
	return (uint64)f->ops->read(f, arg_u64(1), arg_int(2));
}

uint64 sys_write(void)
{
	struct file *f = fd_file(arg_int(0));

	if (!f || !f->writable || !f->ops->write || arg_int(2) < 0)
		return SYS_ERROR;
	return (uint64)f->ops->write(f, arg_u64(1), arg_int(2));
}

uint64 sys_close(void)
{
	int fd = arg_int(0);
	struct file *f = fd_file(fd);

	if (!f)
		return SYS_ERROR;
	myproc()->ofile[fd] = NULL;
	fileclose(f);
	return 0;
}

uint64 sys_fstat(void)
{
	struct file *f = fd_file(arg_int(0));
	struct stat st;

	if (!f || !f->ops->stat || f->ops->stat(f, &st) < 0)
		return SYS_ERROR;
	return copyout(arg_u64(1), &st, sizeof(st));
}

/* What was done so far, to any file, survives a power cut from here on. */
uint64 sys_fsync(void)
{
	struct file *f = fd_file(arg_int(0));

	if (!f || !f->ip)
		return SYS_ERROR;
	fs_sync();
	return 0;
}

/* The call whose first argument is a path: @op, as one operation. */
static uint64 path_call(int (*op)(const char *path))
{
	char path[MAXPATH];
	int result;

	if (arg_str(0, path, MAXPATH) < 0)
		return SYS_ERROR;
	begin_op();
	result = op(path);
	end_op();
	return result;
}

/* One name more for @ip, under its lock. Return: 0, or -1. */
static int count_name(struct inode *ip)
{
	int result = -1;

	ilock(ip);
	if (ip->d.type != T_DIR && ip->d.nlink > 0 && ip->d.nlink < NLINK_MAX) {
		ip->d.nlink++;
		iupdate(ip);
		result = 0;
	}
	iunlock(ip);
	return result;
}

static void uncount_name(struct inode *ip)
{
	ilock(ip);
	ip->d.nlink--;
	iupdate(ip);
	iunlock(ip);
}

static int link_op(const char *old, const char *new)
{
	char name[DIRSIZ];
	struct inode *dir, *ip = namei(old);
	int result = -1;

	if (!ip)
		return -1;
	if (count_name(ip) == 0) {
		dir = nameiparent(new, name);
		if (dir) {
			ilock(dir);
			result = dirlink(dir, name, ip->c.number);
			iunlockput(dir);
		}
		if (result < 0)
			uncount_name(ip);
	}
	iput(ip);
	return result;
}

uint64 sys_link(void)
{
	char old[MAXPATH], new[MAXPATH];
	int result;

	if (arg_str(0, old, MAXPATH) < 0 || arg_str(1, new, MAXPATH) < 0)
		return SYS_ERROR;
	begin_op();
	result = link_op(old, new);
	end_op();
	return result;
}

/* Remove the entry of @dir at @off, which is @ip's; both are locked. */
static void remove_name(struct inode *dir, uint off, struct inode *ip)
{
	dirunlink(dir, off);
	ip->d.nlink--;
	if (ip->d.type == T_DIR) {
		/* Its ".." is gone with it; so is the way back for a process in it. */
		dir->d.nlink--;
		itrunc(ip);
	}
	iupdate(dir);
	iupdate(ip);
}

static int unlink_op(const char *path)
{
	char name[DIRSIZ];
	struct inode *ip = NULL, *dir = nameiparent(path, name);
	uint off;
	int result = -1;

	if (!dir)
		return -1;
	ilock(dir);
	if (namecmp(name, ".") && namecmp(name, ".."))
		ip = dirlookup(dir, name, &off);
	if (ip) {
		ilock(ip);
		if (ip->d.type != T_DIR || dir_is_empty(ip)) {
			remove_name(dir, off, ip);
			result = 0;
		}
		iunlockput(ip);
	}
	iunlockput(dir);
	return result;
}

uint64 sys_unlink(void)
{
	return path_call(unlink_op);
}

/* Give the new, locked @ip its name in the locked @dir. Return: 0, or -1. */
static int name_new(struct inode *dir, const char *name, struct inode *ip)
{
	bool is_dir = ip->d.type == T_DIR;

	if (is_dir && dir->d.nlink >= NLINK_MAX)
		return -1;
	ip->d.nlink = 1;
	iupdate(ip);
	if ((is_dir &&
	     (dirlink(ip, ".", ip->c.number) < 0 || dirlink(ip, "..", dir->c.number) < 0)) ||
	    dirlink(dir, name, ip->c.number) < 0) {
		ip->d.nlink = 0; /* the caller's iput() frees it */
		iupdate(ip);
		return -1;
	}
	if (is_dir) {
		dir->d.nlink++; /* for the new ".." */
		iupdate(dir);
	}
	return 0;
}

/*
 * Make a file, or find it if it is there and @type is T_FILE. Context: in an
 * operation. Return: a reference, locked; NULL when it cannot be.
 */
static struct inode *create(const char *path, short type, short major, short minor)
{
	char name[DIRSIZ];
	struct inode *ip, *dir = nameiparent(path, name);

	if (!dir)
		return NULL;
	ilock(dir);
	ip = dirlookup(dir, name, NULL);
	if (ip) {
		iunlockput(dir);
		ilock(ip);
		if (type == T_FILE && (ip->d.type == T_FILE || ip->d.type == T_DEVICE))
			return ip;
		iunlockput(ip);
		return NULL;
	}
	ip = ialloc(type);
	if (ip) {
		ip->d.major = major;
		ip->d.minor = minor;
		if (name_new(dir, name, ip) < 0) {
			iunlockput(ip);
			ip = NULL;
		}
	}
	iunlockput(dir);
	return ip;
}

/* The inode that open() is for, locked, or NULL. Context: in an operation. */
static struct inode *open_inode(const char *path, int mode)
{
	struct inode *ip;

	if (mode & O_CREATE)
		return create(path, T_FILE, 0, 0);
	ip = namei(path);
	if (!ip)
		return NULL;
	ilock(ip);
	if (ip->d.type == T_DIR && mode != O_RDONLY) {
		iunlockput(ip);
		return NULL;
	}
	return ip;
}

static int open_op(struct file *f, const char *path, int mode)
{
	struct inode *ip = open_inode(path, mode);
	bool is_device;

	if (!ip)
		return -1;
	is_device = ip->d.type == T_DEVICE;
	if (is_device && (ip->d.major < 0 || ip->d.major >= NDEV)) {
		iunlockput(ip);
		return -1;
	}
	if ((mode & O_TRUNC) && ip->d.type == T_FILE)
		itrunc(ip);
	f->ip = ip;
	f->major = ip->d.major;
	f->readable = !(mode & O_WRONLY);
	f->writable = mode & (O_WRONLY | O_RDWR);
	f->append = mode & O_APPEND;
	f->ops = is_device ? &device_file_ops : &inode_file_ops;
	iunlock(ip);
	return 0;
}

uint64 sys_open(void)
{
	char path[MAXPATH];
	struct file *f;
	int fd, result, mode = arg_int(1);

	if (arg_str(0, path, MAXPATH) < 0 || (mode & ~MODE_BITS))
		return SYS_ERROR;
	/* The descriptor comes first: without one, no file is created. */
	f = filealloc();
	fd = f ? fdalloc(f) : -1;
	if (fd < 0) {
		if (f)
			fileclose(f);
		return SYS_ERROR;
	}
	begin_op();
	result = open_op(f, path, mode);
	end_op();
	if (result < 0) {
		myproc()->ofile[fd] = NULL;
		fileclose(f);
		return SYS_ERROR;
	}
	return fd;
}

/* Make a directory, or a device file. Return: 0, or -1. */
static int make(const char *path, short type, short major, short minor)
{
	struct inode *ip = create(path, type, major, minor);

	if (!ip)
		return -1;
	iunlockput(ip);
	return 0;
}

static int mkdir_op(const char *path)
{
	return make(path, T_DIR, 0, 0);
}

uint64 sys_mkdir(void)
{
	return path_call(mkdir_op);
}

static int mknod_op(const char *path)
{
	return make(path, T_DEVICE, arg_int(1), arg_int(2));
}

uint64 sys_mknod(void)
{
	/* open() knows which numbers have a driver; here they must fit on the disk. */
	if (arg_int(1) != (short)arg_int(1) || arg_int(2) != (short)arg_int(2))
		return SYS_ERROR;
	return path_call(mknod_op);
}

static int chdir_op(const char *path)
{
	struct inode *ip = namei(path);
	bool is_dir;

	if (!ip)
		return -1;
	ilock(ip);
	is_dir = ip->d.type == T_DIR;
	iunlock(ip);
	/* Whichever of the two it no longer stands in. */
	iput(is_dir ? myproc()->cwd : ip);
	if (is_dir)
		myproc()->cwd = ip;
	return is_dir ? 0 : -1;
}

uint64 sys_chdir(void)
{
	return path_call(chdir_op);
}

uint64 sys_pipe(void)
{
	struct file *end[2];
	int fd[2] = { -1, -1 };

	if (pipealloc(&end[0], &end[1]) < 0)
		return SYS_ERROR;
	fd[0] = fdalloc(end[0]);
	fd[1] = fdalloc(end[1]);
	if (fd[0] >= 0 && fd[1] >= 0 && copyout(arg_u64(0), fd, sizeof(fd)) == 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			myproc()->ofile[fd[i]] = NULL;
		fileclose(end[i]);
	}
	return SYS_ERROR;
}
