/* SPDX-License-Identifier: MIT */
/*
 * param.h - the limits that a program can meet, under xv6's names.
 *
 * Some are real limits here (NOFILE, MAXARG, MAXPATH, MAXOPBLOCKS); the others
 * are what xv6's programs size their arrays and their tests by. This kernel
 * allows more processes than NPROC: the boot argument procs_max says how many,
 * and procs_max=64 imitates xv6.
 *
 * Read next: fs.h, the limits of the file system.
 */
#ifndef KERNEL_PARAM_H
#define KERNEL_PARAM_H

#define NPROC		64	/* processes in xv6; see above */
#define NCPU		8	/* harts */
#define NOFILE		16	/* open files of one process */
#define NFILE		100	/* open files of all processes in xv6 */
#define NINODE		50	/* inodes in use at once in xv6 */
#define NDEV		10	/* one more than the highest major number */
#define ROOTDEV		1	/* device number of the root file system */
#define MAXARG		32	/* arguments of exec() */
#define MAXOPBLOCKS	10	/* blocks that one system call may log */
#define LOGSIZE		(MAXOPBLOCKS * 3)	/* blocks in the log */
#define NBUF		(MAXOPBLOCKS * 3)	/* blocks cached in xv6 */
#define FSSIZE		2000	/* blocks of xv6's file system */
#define MAXPATH		128	/* bytes of a path, its 0 included */
#define USERSTACK	1	/* pages of a user stack in xv6 */

#endif
