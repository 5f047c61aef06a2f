/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The user half of scx_rlfifo: tasks go back in the order in which they come, with slices that are
 * the shorter the more of them wait.
 */
#include "rustland.h"

#define LAUNCH_SLICE_NS 5000000ULL

SL_USER_HALF(LAUNCH_ROUND_NS)
{
	struct queued_task_ctx task;
	u64 nr_waiting = nr_queued;

	while (launch_take(&task))
		launch_give(&task, LAUNCH_SLICE_NS / (nr_waiting + 1), 0);
	nr_scheduled = 0;
}

static int launch(void)
{
	return launch_rustland(LAUNCH_SLICE_NS);
}
