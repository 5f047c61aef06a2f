/* SPDX-License-Identifier: MIT */
/*
 * fdt.c - reads the flattened device tree, and the boot arguments in it.
 *
 * A tree is a string of big-endian words: a node begins with its name, has
 * properties, then nodes of its own, and an end (Devicetree Specification 0.4,
 * chapter 5). It is walked once for the few properties that are needed. A node's
 * properties stand before the nodes in it, so the last name met is theirs.
 *
 * Called by main.c. Must stay true: nothing here needs memory or a lock.
 * Read next: main.c.
 */
#include "bootargs.h"
#include "mem.h"
#include "memlayout.h"
#include "print.h"

#define FDT_MAGIC 0xd00dfeed

enum fdt_token {
	FDT_BEGIN_NODE = 1,
	FDT_END_NODE = 2,
	FDT_PROPERTY = 3,
	FDT_NOP = 4,
	FDT_END = 9,
};

struct property {
	const char *name;
	const u8 *value;
	u32 bytes;
};

u8 *job_start;
u64 job_bytes;

static char bootargs[BOOTARGS_MAX];
static u64 job_end_phys;

static u32 be32(const u8 *at)
{
	return (u32)at[0] << 24 | (u32)at[1] << 16 | (u32)at[2] << 8 | at[3];
}

/* A number of one or two words. */
static u64 number(const struct property *p)
{
	return p->bytes == 8 ? (u64)be32(p->value) << 32 | be32(p->value + 4) : be32(p->value);
}

/* Node names end in @address: compare what is before it. */
static bool is_kind(const char *node, const char *kind)
{
	u64 n = strlen(kind);

	return !strncmp(node, kind, n) && (!node[n] || node[n] == '@');
}

static bool has_word(const struct property *p, const char *word)
{
	u64 n = strlen(word);

	for (u32 i = 0; i + n <= p->bytes; i++)
		if (!memcmp(p->value + i, word, n))
			return true;
	return false;
}

static void read_chosen(const struct property *p)
{
	if (!strcmp(p->name, "bootargs")) {
		if (p->bytes > BOOTARGS_MAX)
			panic("boot arguments of more than %d bytes", BOOTARGS_MAX);
		copy_name(bootargs, (const char *)p->value, sizeof(bootargs));
	} else if (!strcmp(p->name, "linux,initrd-start")) {
		job_start = phys_to_virt(number(p));
	} else if (!strcmp(p->name, "linux,initrd-end")) {
		job_end_phys = number(p);
	}
}

static void read_property(struct machine *m, const char *node, const struct property *p)
{
	if (is_kind(node, "chosen")) {
		read_chosen(p);
	} else if (is_kind(node, "memory") && !strcmp(p->name, "reg")) {
		/* Two words of address, two of size. */
		if (be32(p->value + 4) == KERNBASE)
			m->ram_bytes = (u64)be32(p->value + 8) << 32 | be32(p->value + 12);
	} else if (is_kind(node, "cpus") && !strcmp(p->name, "timebase-frequency")) {
		m->timebase_hz = number(p);
	} else if (is_kind(node, "cpu") && !strcmp(p->name, "riscv,isa")) {
		m->nr_harts++;
		m->has_sstc &= has_word(p, "_sstc");
	}
}

static u32 align4(u32 bytes)
{
	return (bytes + 3) & ~3U;
}

void fdt_read(const void *fdt, struct machine *m)
{
	const u8 *tree = fdt;
	const u8 *at = tree + be32(tree + 8);
	const char *strings = (const char *)tree + be32(tree + 12);
	const char *node = "";

	if (be32(tree) != FDT_MAGIC)
		panic("the firmware gave no device tree");
	*m = (struct machine){ .has_sstc = true };
	for (u32 token = be32(at); token != FDT_END; token = be32(at)) {
		at += 4;
		if (token == FDT_BEGIN_NODE) {
			node = (const char *)at;
			at += align4(strlen(node) + 1);
		} else if (token == FDT_PROPERTY) {
			struct property p = {
				.bytes = be32(at),
				.name = strings + be32(at + 4),
				.value = at + 8,
			};

			read_property(m, node, &p);
			at += 8 + align4(p.bytes);
		} else if (token != FDT_NOP && token != FDT_END_NODE) {
			panic("device tree: unknown token %u", token);
		}
	}
	if (job_start)
		job_bytes = job_end_phys - virt_to_phys(job_start);
}

/* ---- boot arguments -------------------------------------------------------- */

bool bootarg(const char *key, char *to, u32 bytes)
{
	u64 n = strlen(key);
	u64 end;

	for (const char *at = bootargs; *at; at += end) {
		while (*at == ' ')
			at++;
		for (end = 0; at[end] && at[end] != ' '; end++)
			;
		/* What is to run has arguments of its own: all that follows. */
		if (!strncmp(at, "run=", 4))
			end = strlen(at);
		if (strncmp(at, key, n) || at[n] != '=')
			continue;
		end -= n + 1;
		copy_name(to, at + n + 1, end + 1 < bytes ? end + 1 : bytes);
		return true;
	}
	return false;
}

u64 bootarg_u64(const char *key, u64 otherwise)
{
	char text[32];
	const char *at = text;
	u64 n = 0;

	if (!bootarg(key, text, sizeof(text)))
		return otherwise;
	do {
		u64 digit = (u64)(*at - '0');

		if (digit > 9 || n > (~0ULL - digit) / 10)
			panic("boot argument %s=%s is no number", key, text);
		n = n * 10 + digit;
	} while (*++at);
	return n;
}
