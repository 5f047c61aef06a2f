/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* S19, S20: as s19_exiting, but wants to be asked about these tasks. */
#define OPS_FLAGS (SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED)
#include "s19_exiting.bpf.c"
