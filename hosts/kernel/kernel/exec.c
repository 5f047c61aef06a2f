/* SPDX-License-Identifier: MIT */
/*
 * exec.c - replaces the current process's program by one of the file system.
 *
 *	0 ........ text R-X, data RW-, as the ELF file says
 *	           guard page: nothing
 *	           stack RW-, USERSTACK pages; arguments at its end
 *	size ..... heap, by sbrk()
 *
 * The new memory is built beside the old one, which goes only when nothing can
 * fail any more. Called by sysproc.c, and by main.c for the first program. Must stay
 * true: a file that is no program here, in any way, is -1 and changes nothing.
 *
 * Read next: vm.c; user/start.S, the first instruction.
 */
#include <schedlab/host.h>

#include "inode.h"
#include "proc.h"
#include "vm.h"

/* What is needed of the ELF format, 64 bits, little-endian. */
#define ELF_MAGIC "\x7f" "ELF\2\1\1"	/* 64 bits, little-endian, version 1 */
#define ELF_RISCV 243
#define ELF_LOAD 1

enum elf_rights {
	ELF_EXECUTE = 1,
	ELF_WRITE = 2,
	ELF_READ = 4,
};

struct elf_header {
	u8 magic[7];
	u8 abi[9];
	u16 type;
	u16 machine;
	u32 version;
	u64 entry;    /* address of the first instruction */
	u64 segments; /* where their table begins in the file */
	u64 sections;
	u32 flags;
	u16 header_bytes;
	u16 segment_bytes; /* of one entry of that table */
	u16 nr_segments;
	u16 section_bytes;
	u16 nr_sections;
	u16 names_idx;
};

struct elf_segment {
	u32 type;
	u32 flags;  /* enum elf_rights */
	u64 offset; /* in the file */
	u64 at;	    /* in memory */
	u64 phys;
	u64 file_bytes;
	u64 bytes; /* in memory; the rest is zero */
	u64 align;
};

_Static_assert(sizeof(struct elf_header) == 64, "as the format has it");
_Static_assert(sizeof(struct elf_segment) == 56, "as the format has it");

/* A program on its way: its memory so far. */
struct program {
	pagetable_t pages;
	u64 size;
	u64 entry;
	u64 sp; /* argv lies there */
	u32 argc;
};

static int read_exact(struct inode *ip, void *to, u64 at, u64 bytes)
{
	if (at + bytes > 0xffffffff)
		return -1;
	return readi(ip, false, (uint64)to, (uint)at, (uint)bytes) == (int)bytes ? 0 : -1;
}

static int load_segment(struct program *new, struct inode *ip, const struct elf_segment *s)
{
	u64 perm = PTE_R;

	if (s->file_bytes > s->bytes || s->at % PGSIZE || s->at < new->size || s->at > USER_END ||
	    s->bytes > USER_END - s->at ||
	    (s->flags & (ELF_WRITE | ELF_EXECUTE)) == (ELF_WRITE | ELF_EXECUTE))
		return -1;
	/* Tables of what is not mapped in between are this program's as well. */
	new->size = s->at;
	perm |= s->flags & ELF_WRITE ? PTE_W : 0;
	perm |= s->flags & ELF_EXECUTE ? PTE_X : 0;
	if (vm_grow(new->pages, s->at, s->at + s->bytes, perm))
		return -1;
	/* Whole pages, so that the next segment cannot share one with this. */
	new->size = PGROUNDUP(s->at + s->bytes);
	for (u64 done = 0; done < s->file_bytes; done += PGSIZE) {
		u64 left = s->file_bytes - done;

		if (read_exact(ip, vm_at(new->pages, s->at + done, PTE_R), s->offset + done,
			       left < PGSIZE ? left : PGSIZE))
			return -1;
	}
	return 0;
}

static int load(struct program *new, struct inode *ip)
{
	struct elf_header header;
	struct elf_segment segment;

	if (read_exact(ip, &header, 0, sizeof(header)) ||
	    memcmp(header.magic, ELF_MAGIC, sizeof(header.magic)) || header.machine != ELF_RISCV ||
	    header.segment_bytes != sizeof(segment))
		return -1;
	for (u32 i = 0; i < header.nr_segments; i++) {
		if (read_exact(ip, &segment, header.segments + i * sizeof(segment), sizeof(segment)))
			return -1;
		if (segment.type == ELF_LOAD && segment.bytes && load_segment(new, ip, &segment))
			return -1;
	}
	new->entry = header.entry;
	return 0;
}

_Static_assert(USERSTACK == 1, "make_stack() fills one page");

/* Stack, with the arguments' strings and then the pointers to them. */
static int make_stack(struct program *new, char **argv)
{
	u64 base = new->size + PGSIZE;
	u64 used = 0, bytes;
	u64 at[MAXARG + 1];
	char *top;
	u32 n;

	if (base + PGSIZE > USER_END || vm_grow(new->pages, base, base + PGSIZE, PTE_R | PTE_W))
		return -1;
	new->size = base + PGSIZE;
	top = (char *)vm_at(new->pages, base, PTE_W) + PGSIZE;
	for (n = 0; argv[n]; n++) {
		bytes = strlen(argv[n]) + 1;
		used = (used + bytes + 15) & ~15ULL;
		if (n == MAXARG || used > PGSIZE)
			return -1;
		memcpy(top - used, argv[n], bytes);
		at[n] = new->size - used;
	}
	at[n] = 0;
	bytes = (n + 1) * sizeof(at[0]);
	used = (used + bytes + 15) & ~15ULL;
	if (used > PGSIZE)
		return -1;
	memcpy(top - used, at, bytes);
	new->sp = new->size - used;
	new->argc = n;
	return 0;
}

static const char *last_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

/* Nothing can fail any more: become the new program. */
static void become(struct proc *p, struct program *new, const char *name)
{
	pagetable_t old = p->pages;
	u64 old_size = p->size;

	copy_name(name_of(p), name, TASK_COMM_LEN);
	push_off();
	p->pages = new->pages;
	p->size = new->size;
	p->uses_fp = false;
	p->frame->status &= ~SSTATUS_FS;
	vm_load(p->pages);
	pop_off();
	p->frame->epc = new->entry;
	p->frame->sp = new->sp;
	p->frame->a1 = new->sp;
	vm_free(old, old_size);
}

int kexec(const char *path, char **argv)
{
	struct program new = { .pages = vm_new() };
	struct inode *ip;
	int err = -1;

	if (!new.pages)
		return -1;
	begin_op();
	ip = namei(path);
	if (ip) {
		ilock(ip);
		if (ip->d.type == T_FILE)
			err = load(&new, ip);
		iunlockput(ip);
	}
	end_op();
	if (err || make_stack(&new, argv)) {
		vm_free(new.pages, new.size);
		return -1;
	}
	become(myproc(), &new, last_name(path));
	return (int)new.argc;
}
