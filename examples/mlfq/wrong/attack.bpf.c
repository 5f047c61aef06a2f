/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* attack.bpf.c - wants to read a file of the machine that grades, and its neighbour's submission. */
#include <scx/common.bpf.h>
#include "/etc/hostname"
#include "full.bpf.c"
