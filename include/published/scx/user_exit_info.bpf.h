/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* For published schedulers; kernel.h is there before. */
