/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user half of scx_cosmos tells it of nodes, and while tasks run. */
#include "nodes.h"
#include "utilization.h"

#if SL_HAS(cpu_util)
SL_USER_THREAD(250000000, LAUNCH_READ_NS)
{
	cpu_util = launch_utilization();
}
#endif

SL_LAUNCH_ON_NODES()
{
	launch_nodes();
	return 0;
}
