/* SPDX-License-Identifier: MIT */
/*
 * linked.h - policies that are linked into a host, all of them together.
 *
 * A host that cannot load a file (the teaching kernel) links the object that
 * tools/link-policies makes of policies/. It holds one entry of sl_policy_table
 * per policy; docs/design/0001-policies-linked-together.md says how. At boot the host calls
 * sl_linked_keep() on every entry, once. Before each start of a policy it
 * calls sl_linked_restore(), sets knobs, and has its maps allocated from
 * policy->sites, as any host does.
 *
 * Read next: tools/link-policies, which writes the table.
 */
#ifndef SCHEDLAB_LINKED_H
#define SCHEDLAB_LINKED_H

#include <scx/native.h>

/* A parameter of a policy: a `const volatile` global with a @knob line. */
struct sl_linked_knob {
	const char *name;
	void *value;	 /* in the policy's data */
	u32 value_bytes; /* 1, 2, 4 or 8 */
	s64 min, max;	 /* of the @knob line; min > max: it gives none */
};

struct sl_linked_policy {
	const char *name; /* of its file, without .bpf.c */
	struct sl_policy *policy;
	u8 *data; /* all that it may write and that starts non-zero */
	u8 *data_end;
	u8 *bss; /* all that it may write and that starts as zero */
	u8 *bss_end;
	u8 *pristine; /* room for a copy of data, filled by sl_linked_keep() */
	const struct sl_linked_knob *knobs;
	u32 nr_knobs;
};

extern const struct sl_linked_policy sl_policy_table[];
extern const u32 sl_nr_linked_policies;

/* Context: once at boot, before any policy has run. */
static inline void sl_linked_keep(const struct sl_linked_policy *linked)
{
	u64 bytes = linked->data_end - linked->data;

	for (u64 i = 0; i < bytes; i++)
		linked->pristine[i] = linked->data[i];
}

/*
 * Make @linked as it was at boot: every variable, knob and map handle. Its maps
 * must have been freed.
 * Context: the policy is not running on any CPU; sl_linked_keep() was called.
 */
static inline void sl_linked_restore(const struct sl_linked_policy *linked)
{
	u64 data_bytes = linked->data_end - linked->data;
	u64 bss_bytes = linked->bss_end - linked->bss;

	for (u64 i = 0; i < data_bytes; i++)
		linked->data[i] = linked->pristine[i];
	for (u64 i = 0; i < bss_bytes; i++)
		linked->bss[i] = 0;
}

#endif
