/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * last_forgotten.bpf.c - it asks for the last task of a CPU (SCX_OPS_ENQ_LAST), queues it, and the CPU goes idle.
 *
 * @breaks work
 * @work-conserving yes  so it says
 */
#include "bug.h"

#define MORE_OPS .flags = SCX_OPS_ENQ_LAST,

#include "bug_ops.h"
