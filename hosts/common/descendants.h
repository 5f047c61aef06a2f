/* SPDX-License-Identifier: MIT */
/*
 * descendants.h - end every process that descends from this one.
 *
 * Meant for a subreaper (PR_SET_CHILD_SUBREAPER): a daemon that forks, calls
 * setsid() and lets its parent end is still a descendant then.
 *
 * Read next: descendants.c; supervise.c, the shortest caller.
 */
#ifndef COMMON_DESCENDANTS_H
#define COMMON_DESCENDANTS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * sl_kill_descendants - SIGKILL to all descendants, then wait 1 ms
 * @nr_refusals: attempts in a row after which only processes of other users
 *	were left, which may not be killed; 0 before the first attempt
 *
 * Return: whether another attempt can help.
 */
bool sl_kill_descendants(uint32_t *nr_refusals);

/**
 * sl_end_descendants - kill and reap all descendants
 *
 * Without descendants it costs one system call.
 *
 * Return: how many children were reaped. Children of another user may be left.
 */
uint32_t sl_end_descendants(void);

#endif
