/* SPDX-License-Identifier: MIT */
/*
 * describe.c - prints what a linked object holds, and tries to spoil it.
 *
 * One line of words per fact, for test_link_policies.py to read. With the
 * argument `init` it also starts every policy, three times: fresh, again
 * without a restore, and after one.
 */
#include <schedlab/linked.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe(const struct sl_linked_policy *linked)
{
	const struct sl_policy *policy = linked->policy;

	printf("policy %s %s\n", linked->name, policy->ops->name);
	for (u32 i = 0; i < linked->nr_knobs; i++) {
		u64 value = 0;

		memcpy(&value, linked->knobs[i].value, linked->knobs[i].value_bytes);
		printf("knob %s %s %u %llu %lld %lld\n", linked->name, linked->knobs[i].name,
		       linked->knobs[i].value_bytes, (unsigned long long)value,
		       (long long)linked->knobs[i].min, (long long)linked->knobs[i].max);
	}
	for (struct sl_map_site *site = policy->sites; site < policy->sites_end; site++) {
		u8 *map = site->map;
		int is_ours = (map >= linked->data && map < linked->data_end) ||
			      (map >= linked->bss && map < linked->bss_end);

		printf("map %s %s %u %u %u %u %s\n", linked->name, site->name, site->type,
		       site->key_bytes, (u32)site->value_bytes, site->max_entries,
		       is_ours ? "inside" : "outside");
	}
}

/* Overwrite all that a policy could, restore it, and compare. */
static int is_restored(const struct sl_linked_policy *linked)
{
	u64 data_bytes = linked->data_end - linked->data;
	u64 bss_bytes = linked->bss_end - linked->bss;
	u8 *data = malloc(data_bytes + 1);
	int is_same;

	memcpy(data, linked->data, data_bytes);
	memset(linked->data, 0xa5, data_bytes);
	memset(linked->bss, 0xa5, bss_bytes);
	sl_linked_restore(linked);
	is_same = !memcmp(data, linked->data, data_bytes);
	for (u64 i = 0; i < bss_bytes; i++)
		is_same &= !linked->bss[i];
	free(data);
	return is_same;
}

int main(int argc, char **argv)
{
	for (u32 i = 0; i < sl_nr_linked_policies; i++)
		sl_linked_keep(&sl_policy_table[i]);
	for (u32 i = 0; i < sl_nr_linked_policies; i++) {
		const struct sl_linked_policy *linked = &sl_policy_table[i];

		describe(linked);
		printf("restored %s %s\n", linked->name, is_restored(linked) ? "yes" : "no");
	}
	if (argc < 2 || strcmp(argv[1], "init"))
		return 0;
	for (u32 i = 0; i < sl_nr_linked_policies; i++) {
		const struct sl_linked_policy *linked = &sl_policy_table[i];
		s32 (*init)(void) = linked->policy->ops->init;
		s32 fresh = init(), again = init();

		sl_linked_restore(linked);
		printf("init %s %d %d %d\n", linked->name, fresh, again, init());
	}
	return 0;
}
