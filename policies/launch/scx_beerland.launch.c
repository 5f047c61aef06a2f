/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the user half of scx_beerland tells it of each CPU. */
#include "capacity.h"
