/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * none.bpf.c - no bug: what is the same in all of this folder is sound.
 *
 * @breaks nothing
 * @work-conserving yes  so it says
 */
#include "bug.h"

/* Nothing of its own. */

#include "bug_ops.h"
