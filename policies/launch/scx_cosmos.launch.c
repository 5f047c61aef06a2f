/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user half of scx_cosmos tells it while tasks run. The rest is in scx_cosmos.launch.toml. */
#include "utilization.h"

#if SL_HAS(cpu_util)
SL_USER_THREAD(250000000, LAUNCH_READ_NS)
{
	cpu_util = launch_utilization();
}
#endif
