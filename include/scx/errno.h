/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * errno.h - Linux's error numbers, for a policy and for what answers it without a C library.
 *
 * A function that can fail returns 0 or more, or one of these with a minus sign, by its
 * name: so do the core, the hosts and policies (tools/tidy looks).
 */
#ifndef SCX_ERRNO_H
#define SCX_ERRNO_H

#ifndef EINVAL
#define EPERM	1
#define ENOENT	2
#define ESRCH	3
#define E2BIG	7
#define EAGAIN	11
#define ENOMEM	12
#define EACCES	13
#define EFAULT	14
#define EBUSY	16
#define EEXIST	17
#define ENODEV	19
#define EINVAL	22
#define ENOSPC	28
#endif
#ifndef EDEADLK
#define EDEADLK	35
#endif
#ifndef EOPNOTSUPP
#define EPROTO	71
#define EOPNOTSUPP	95
#define ETIMEDOUT	110
#endif

#endif
