/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * note.h - a policy's remark for the record: "queue 3 is now 17 long".
 *
 * Becomes a NOTE record on the hosts of this project and a line of the trace on
 * Linux, from which the same record is made. The first word of the format is
 * what both recognise; do not use bpf_printk() with it directly.
 *
 * Read next: schedlab/record.h.
 */
#ifndef SCX_NOTE_H
#define SCX_NOTE_H

#include <scx/common.bpf.h>

/* @key: the policy's own numbering; @value: what it was. */
static inline void policy_note(u32 key, u32 value)
{
	bpf_printk("schedlab-note %u %u", key, value);
}

#endif
