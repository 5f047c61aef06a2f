/* SPDX-License-Identifier: MIT */
/*
 * fcntl.h - flags of open(). The numbers are xv6's; O_APPEND is new, for the
 * shell's >>, and makes every write() start at the end of the file.
 *
 * Read next: syscall.h.
 */
#ifndef KERNEL_FCNTL_H
#define KERNEL_FCNTL_H

#define O_RDONLY	0x000
#define O_WRONLY	0x001
#define O_RDWR		0x002
#define O_CREATE	0x200
#define O_TRUNC		0x400
#define O_APPEND	0x800

#endif
