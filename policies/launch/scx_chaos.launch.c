/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user half of scx_chaos does before it attaches it, with none of its faults asked for. */
#include "p2dq.h"

static int launch(void)
{
	SL_SET(ppid_targeting_ppid, -1);
	/* Sums of frequencies: all of them are that of no fault. */
	for (u32 i = 0; i < ARRAY_SIZE(trait_delay_freq_frac32); i++)
		SL_SET(trait_delay_freq_frac32[i], ~0U);
	return launch_p2dq();
}
