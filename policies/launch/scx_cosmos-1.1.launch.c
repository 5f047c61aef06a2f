/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user half of scx_cosmos 1.1 tells it of each CPU. */
#include "capacity.h"
