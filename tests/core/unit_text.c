/* SPDX-License-Identifier: MIT */
/*
 * unit_text.c - formatted text against the C library's, and cpumasks against
 * arrays of bool.
 *
 * Read next: bpf/print.c, bpf/cpumask.c.
 */
#include <stdarg.h>

#include "unit.h"

static u32 format(char *to, u32 bytes, const char *fmt, ...)
{
	va_list args;
	u32 used;

	va_start(args, fmt);
	used = sl_format(to, bytes, fmt, args);
	va_end(args);
	return used;
}

static u64 random_value(void)
{
	u64 value = (u64)sl_host_random() << 32 | sl_host_random();

	switch (fake_below(5)) {
	case 0:
		return 0;
	case 1:
		return ~0ULL;
	case 2:
		return 1ULL << 63;
	default:
		return value >> fake_below(64);
	}
}

/* The same conversion by both. The buffer ends anywhere. */
static void compare(const char *fmt, char kind, u32 longs)
{
	static const char *const texts[] = { "", "a", "some text", "-5" };
	char ours[80], theirs[80];
	u32 bytes = fake_below(sizeof(ours) + 1);
	u64 v = random_value();
	u32 used, expected;

	memset(ours, '#', sizeof(ours));
	memset(theirs, '#', sizeof(theirs));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
	if (kind == 's') {
		const char *text = texts[fake_below(ARRAY_SIZE(texts))];

		used = format(ours, bytes, fmt, text);
		expected = (u32)snprintf(theirs, bytes, fmt, text);
	} else if (kind == 'c') {
		used = format(ours, bytes, fmt, 'a' + (int)(v % 26));
		expected = (u32)snprintf(theirs, bytes, fmt, 'a' + (int)(v % 26));
	} else if (longs) {
		used = format(ours, bytes, fmt, v);
		expected = (u32)snprintf(theirs, bytes, fmt, v);
	} else {
		used = format(ours, bytes, fmt, (u32)v);
		expected = (u32)snprintf(theirs, bytes, fmt, (u32)v);
	}
#pragma GCC diagnostic pop
	if (!bytes)
		expected = 0;
	else if (expected > bytes - 1)
		expected = bytes - 1;
	CHECK(used == expected, "\"%s\" in %u bytes: %u, not %u", fmt, bytes, used, expected);
	CHECK(!memcmp(ours, theirs, sizeof(ours)), "\"%s\": \"%.70s\", not \"%.70s\"", fmt, ours,
	      theirs);
}

TEST(format_like_the_c_library)
{
	static const char kinds[] = "diuxXsc";
	static const char *const lengths[] = { "", "l", "ll", "z" };

	for (u32 i = 0; i < 100000; i++) {
		char kind = kinds[fake_below(sizeof(kinds) - 1)];
		bool is_number = kind != 's' && kind != 'c';
		u32 longs = is_number ? fake_below(4) : 0;
		char fmt[40];
		char width[8] = "";

		if (fake_below(2))
			snprintf(width, sizeof(width), "%u", 1 + fake_below(30));
		snprintf(fmt, sizeof(fmt), "<%%%s%s%s%s%c%%%%>", fake_below(3) ? "" : "-",
			 is_number && width[0] && !fake_below(3) ? "0" : "", width, lengths[longs],
			 kind);
		compare(fmt, kind, longs);
	}
}

TEST(format_odd_input)
{
	char text[32];

	format(text, sizeof(text), "%s|", NULL);
	CHECK(!strcmp(text, "(null)|"));
	format(text, sizeof(text), "a%");
	CHECK(!strcmp(text, "a"));
	format(text, sizeof(text), "%llx", 0xfedcba9876543210ULL);
	CHECK(!strcmp(text, "fedcba9876543210"));
	CHECK(!format(text, 1, "%d", 5) && !text[0]);
}

/* ---- cpumasks ------------------------------------------------------------ */

#define CPUS_MAX 1024
static bool model[3][CPUS_MAX];

static u32 first_and(const bool *a, const bool *b, u32 nr)
{
	for (u32 i = 0; i < nr; i++) {
		if (a[i] && b[i])
			return i;
	}
	return nr;
}

static void check_masks(struct bpf_cpumask *const *mask, u32 nr)
{
	const struct cpumask *a = cast_mask(mask[0]), *b = cast_mask(mask[1]);
	bool is_equal = true, is_subset = true;
	u32 weight = 0, zero = nr;

	for (u32 i = nr; i-- > 0;) {
		weight += model[0][i];
		is_equal &= model[0][i] == model[1][i];
		is_subset &= !model[0][i] || model[1][i];
		if (!model[0][i])
			zero = i;
		CHECK(bpf_cpumask_test_cpu(i, a) == model[0][i]);
	}
	CHECK(bpf_cpumask_weight(a) == weight);
	CHECK(bpf_cpumask_first(a) == first_and(model[0], model[0], nr));
	CHECK(bpf_cpumask_first_zero(a) == zero);
	CHECK(bpf_cpumask_first_and(a, b) == first_and(model[0], model[1], nr));
	CHECK(bpf_cpumask_intersects(a, b) == (first_and(model[0], model[1], nr) < nr));
	CHECK(bpf_cpumask_equal(a, b) == is_equal);
	CHECK(bpf_cpumask_subset(a, b) == is_subset);
	CHECK(bpf_cpumask_empty(a) == !weight);
	CHECK(bpf_cpumask_full(a) == (weight == nr));
}

static void change_masks(struct bpf_cpumask *const *mask, u32 nr)
{
	u32 cpu = fake_below(nr);
	u32 dice = fake_below(9);
	bool any = false;

	switch (dice) {
	case 0:
		bpf_cpumask_set_cpu(cpu, mask[0]);
		model[0][cpu] = true;
		break;
	case 1:
		bpf_cpumask_clear_cpu(cpu, mask[0]);
		model[0][cpu] = false;
		break;
	case 2:
		CHECK(bpf_cpumask_test_and_set_cpu(cpu, mask[0]) == model[0][cpu]);
		model[0][cpu] = true;
		break;
	case 3:
		CHECK(bpf_cpumask_test_and_clear_cpu(cpu, mask[0]) == model[0][cpu]);
		model[0][cpu] = false;
		break;
	case 4:
		any = fake_below(2);
		for (u32 i = 0; i < nr; i++)
			model[0][i] = any;
		any ? bpf_cpumask_setall(mask[0]) : bpf_cpumask_clear(mask[0]);
		break;
	case 5:
		for (u32 i = 0; i < nr; i++)
			any |= model[2][i] = model[0][i] && model[1][i];
		CHECK(bpf_cpumask_and(mask[2], cast_mask(mask[0]), cast_mask(mask[1])) == any);
		break;
	case 6:
		for (u32 i = 0; i < nr; i++)
			model[2][i] = model[0][i] || model[1][i];
		bpf_cpumask_or(mask[2], cast_mask(mask[0]), cast_mask(mask[1]));
		break;
	case 7:
		for (u32 i = 0; i < nr; i++)
			model[2][i] = model[0][i] != model[1][i];
		bpf_cpumask_xor(mask[2], cast_mask(mask[0]), cast_mask(mask[1]));
		break;
	default:
		memcpy(model[0], model[2], sizeof(model[0]));
		bpf_cpumask_copy(mask[0], cast_mask(mask[2]));
	}
}

TEST(cpumasks)
{
	static const u32 sizes[] = { 1, 3, 64, 65, 130, 1024 };
	u32 nr = sizes[fake_below(ARRAY_SIZE(sizes))];
	struct bpf_cpumask *mask[3], *swap;
	bool row[CPUS_MAX];

	unit_machine(nr);
	for (u32 i = 0; i < 3; i++)
		mask[i] = bpf_cpumask_create();
	/* CPUs that are not there are neither set nor found. */
	bpf_cpumask_set_cpu(nr, mask[0]);
	CHECK(bpf_cpumask_empty(cast_mask(mask[0])));
	CHECK(!bpf_cpumask_test_and_set_cpu(CPUS_MAX, mask[0]));
	for (u32 i = 0; i < 2000; i++) {
		change_masks(mask, nr);
		check_masks(mask, nr);
		if (fake_below(3))
			continue;
		swap = mask[0];
		mask[0] = mask[1];
		mask[1] = swap;
		memcpy(row, model[0], sizeof(row));
		memcpy(model[0], model[1], sizeof(row));
		memcpy(model[1], row, sizeof(row));
	}
	for (u32 i = 0; i < 3; i++) {
		CHECK(bpf_cpumask_acquire(mask[i]) == mask[i]);
		bpf_cpumask_release(mask[i]);
		bpf_cpumask_release(mask[i]);
	}
	unit_end();
}
