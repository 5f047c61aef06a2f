/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S12: as s12_last_task, but wants to hear of the last task. */
#define OPS_FLAGS SCX_OPS_ENQ_LAST
#include "s12_last_task.bpf.c"
