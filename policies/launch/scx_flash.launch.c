/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user half of scx_flash tells it of each CPU. */
#include "siblings.h"

static int launch(void)
{
	return launch_siblings();
}
