/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "p2dq.h"

static int launch(void)
{
	return launch_p2dq();
}
