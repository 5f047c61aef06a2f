/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * exits_not_found.bpf.c - a queue of pids, also of tasks that exit: such a task's pid may be gone already, and it is dropped.
 *
 * @breaks stall
 * @shown-by exit
 */
#define MORE_OPS .flags = SCX_OPS_ENQ_EXITING,
#include "refused_push_dropped.bpf.c"
