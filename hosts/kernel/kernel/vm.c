/* SPDX-License-Identifier: MIT */
/*
 * vm.c - page tables: the kernel's half, and each process's half.
 *
 *	root [512] --> level 1 [512] --> level 0 [512] --> page of 4 KiB
 *	1 GiB each     2 MiB each        4 KiB each
 *
 * User memory is one piece from 0 up to the process's size, so nothing but that
 * range is ever walked. A level 0 table covers 2 MiB of it, an AREA.
 *
 * Called by proc.c, exec.c, trap.c. Must stay true: no page is both writable and
 * executable, under any of its addresses.
 *
 * Read next: proc.c.
 */
#include "vm.h"

#include <schedlab/host.h>

#include "memlayout.h"
#include "print.h"
#include "proc.h"

#define AREA_BYTES	(1UL << 21)
#define GIGA_BYTES	(1UL << 30)
#define KERNEL_RW	(PTE_V | PTE_R | PTE_W | PTE_G | PTE_A | PTE_D)

pagetable_t kernel_pages;

/* Edges of the image, kernel.ld: each begins a page. */
extern char text_start[], text_end[], rodata_end[];

static u64 stacks_phys; /* two pages per stack, without holes */
static u32 nr_stacks;
static u64 ram_end_phys;

u64 virt_to_phys(const void *at)
{
	u64 virt = (u64)at;

	if (virt >= STACKS_BASE) {
		u64 slot = (virt - STACKS_BASE) / STACK_STRIDE;

		return stacks_phys + slot * STACK_BYTES + (virt & (STACK_BYTES - 1));
	}
	return virt - DIRECT_BASE;
}

void *phys_to_virt(u64 phys)
{
	return (void *)(phys + DIRECT_BASE);
}

static pagetable_t table_of(pte_t pte)
{
	return phys_to_virt(PTE2PA(pte));
}

/* The table that @pte refers to; made if there is none. NULL: out of memory. */
static pagetable_t make_table(pte_t *pte)
{
	pagetable_t table;

	if (*pte & PTE_V)
		return table_of(*pte);
	table = kalloc_zeroed();
	if (table)
		*pte = PA2PTE(virt_to_phys(table)) | PTE_V;
	return table;
}

/* ---- the kernel's half, at boot ------------------------------------------- */

static pagetable_t make_kernel_table(pte_t *pte)
{
	pagetable_t table = make_table(pte);

	if (!table)
		panic("no memory for the kernel's page tables");
	return table;
}

static u64 rights_of(u64 virt)
{
	u64 common = PTE_V | PTE_R | PTE_G | PTE_A | PTE_D;

	if (virt >= (u64)text_start && virt < (u64)text_end)
		return common | PTE_X;
	if (virt >= (u64)text_end && virt < (u64)rodata_end)
		return common;
	return common | PTE_W;
}

/* 2 MiB of RAM: in one piece, or in pages where the kernel's image lies. */
static void map_area(u64 phys, void *image_end)
{
	u64 virt = phys + DIRECT_BASE;
	pagetable_t level1 = make_kernel_table(&kernel_pages[PX(2, virt)]);
	pte_t *pte = &level1[PX(1, virt)];

	if (virt >= (u64)image_end) {
		*pte = PA2PTE(phys) | KERNEL_RW;
		return;
	}
	pte = make_kernel_table(pte);
	for (u64 i = 0; i < 512; i++)
		pte[i] = PA2PTE(phys + i * PGSIZE) | rights_of(virt + i * PGSIZE);
}

static void map_stacks(void)
{
	u64 phys = stacks_phys;

	for (u32 i = 0; i < nr_stacks; i++) {
		u64 virt = (u64)kernel_stack_top(i) - STACK_BYTES;
		pte_t *pte = make_kernel_table(&kernel_pages[PX(2, virt)]);

		pte = make_kernel_table(&pte[PX(1, virt)]);
		for (u32 k = 0; k < STACK_BYTES / PGSIZE; k++, phys += PGSIZE)
			pte[PX(0, virt) + k] = PA2PTE(phys) | KERNEL_RW;
	}
}

void *kernel_stack_top(u32 slot)
{
	SL_ASSERT(slot < nr_stacks);
	return (void *)(STACKS_BASE + (slot + 1UL) * STACK_STRIDE);
}

void vm_init(u64 ram_bytes, void *image_end, u32 stacks)
{
	void *first;

	nr_stacks = stacks;
	first = kalloc_pages(stacks * (u64)(STACK_BYTES / PGSIZE));
	kernel_pages = kalloc_zeroed();
	if (!first || !kernel_pages)
		panic("no memory for %u kernel stacks; make procs_max less", stacks);
	stacks_phys = virt_to_phys(first);
	ram_end_phys = KERNBASE + ram_bytes;
	kernel_pages[PX(2, DIRECT_BASE)] = PA2PTE(0) | KERNEL_RW;
	/* What lies below the kernel is the firmware's. */
	for (u64 phys = KERNEL_LOAD; phys < ram_end_phys; phys += AREA_BYTES)
		map_area(phys, image_end);
	map_stacks();
	vm_load(kernel_pages);
}

u64 vm_satp(pagetable_t pages)
{
	return SATP_SV39 | (virt_to_phys(pages) >> PGSHIFT);
}

void vm_load(pagetable_t pages)
{
	csr_write(satp, vm_satp(pages));
	/* And forget instructions: another hart may have loaded the program. */
	asm volatile("sfence.vma; fence.i" : : : "memory");
}

/* ---- a process's half ------------------------------------------------------ */

pagetable_t vm_new(void)
{
	pagetable_t pages = kalloc_zeroed();

	if (!pages)
		return NULL;
	pages[PX(2, DIRECT_BASE)] = kernel_pages[PX(2, DIRECT_BASE)];
	pages[PX(2, STACKS_BASE)] = kernel_pages[PX(2, STACKS_BASE)];
	for (u64 phys = KERNBASE; phys < ram_end_phys; phys += GIGA_BYTES) {
		u64 idx = PX(2, phys + DIRECT_BASE);

		pages[idx] = kernel_pages[idx];
	}
	return pages;
}

/* The level 0 table with the entry of @at, or NULL. */
static pagetable_t area_of(pagetable_t pages, u64 at)
{
	pte_t pte = pages[PX(2, at)];

	if (!(pte & PTE_V))
		return NULL;
	pte = table_of(pte)[PX(1, at)];
	return pte & PTE_V ? table_of(pte) : NULL;
}

static pagetable_t make_area(pagetable_t pages, u64 at)
{
	pagetable_t level1 = make_table(&pages[PX(2, at)]);

	return level1 ? make_table(&level1[PX(1, at)]) : NULL;
}

/* Where the area with @at ends, or @end if that comes first. */
static u64 area_end(u64 at, u64 end)
{
	u64 next = (at | (AREA_BYTES - 1)) + 1;

	return next < end ? next : end;
}

static int grow_area(pagetable_t area, u64 from, u64 to, u64 flags)
{
	for (u64 at = from; at < to; at += PGSIZE) {
		void *page = kalloc_zeroed();

		if (!page)
			return -1;
		area[PX(0, at)] = PA2PTE(virt_to_phys(page)) | flags;
	}
	return 0;
}

int vm_grow(pagetable_t pages, u64 from, u64 to, u64 perm)
{
	u64 flags = perm | PTE_V | PTE_U | PTE_A | PTE_D;

	from = PGROUNDUP(from);
	to = PGROUNDUP(to);
	/* Not one page of what is too much: others would miss it meanwhile. */
	if ((to - from) / PGSIZE > nr_free_pages())
		return -1;
	for (u64 at = from; at < to; at = area_end(at, to)) {
		pagetable_t area = make_area(pages, at);

		if (!area || grow_area(area, at, area_end(at, to), flags)) {
			vm_shrink(pages, to, from);
			return -1;
		}
	}
	return 0;
}

static void clear_area(pagetable_t area, u64 from, u64 to)
{
	for (u64 at = from; at < to; at += PGSIZE) {
		pte_t *pte = &area[PX(0, at)];

		if (*pte)
			kfree(table_of(*pte));
		*pte = 0;
	}
}

void vm_shrink(pagetable_t pages, u64 from, u64 to)
{
	u64 end = PGROUNDUP(from);

	for (u64 at = PGROUNDUP(to); at < end; at = area_end(at, end)) {
		pte_t *root = &pages[PX(2, at)];
		pagetable_t area = area_of(pages, at);

		if (area)
			clear_area(area, at, area_end(at, end));
		/* Nothing is above @from: tables that begin here are empty. */
		if (area && at % AREA_BYTES == 0) {
			kfree(area);
			table_of(*root)[PX(1, at)] = 0;
		}
	}
	for (u64 at = PGROUNDUP(to); at < end; at = (at | (GIGA_BYTES - 1)) + 1) {
		pte_t *root = &pages[PX(2, at)];

		if (*root && at % GIGA_BYTES == 0) {
			kfree(table_of(*root));
			*root = 0;
		}
	}
	asm volatile("sfence.vma" : : : "memory");
}

void vm_free(pagetable_t pages, u64 size)
{
	vm_shrink(pages, size, 0);
	kfree(pages);
}

static void fork_area(pagetable_t from, pagetable_t to, u64 first, u64 nr)
{
	for (u64 i = first; i < first + nr; i++) {
		if (!from[i])
			continue;
		if (from[i] & PTE_W)
			from[i] ^= PTE_W | PTE_COW;
		to[i] = from[i];
		page_share(table_of(from[i]));
	}
}

int vm_fork(pagetable_t parent, pagetable_t child, u64 size)
{
	u64 end = PGROUNDUP(size);
	int err = 0;

	for (u64 at = 0; at < end && !err; at = area_end(at, end)) {
		pagetable_t from = area_of(parent, at);
		pagetable_t to = from ? make_area(child, at) : NULL;
		u64 nr = (area_end(at, end) - at) / PGSIZE;

		if (to)
			fork_area(from, to, PX(0, at), nr);
		else if (from)
			err = -1;
	}
	/* Pages that were writable a moment ago are so no more. */
	asm volatile("sfence.vma" : : : "memory");
	return err;
}

void *vm_at(pagetable_t pages, u64 at, u64 perm)
{
	pagetable_t area = at < MAXVA ? area_of(pages, at) : NULL;
	pte_t pte = area ? area[PX(0, at)] : 0;

	if (!(pte & PTE_U) || (pte & perm) != perm)
		return NULL;
	return (char *)table_of(pte) + at % PGSIZE;
}

enum vm_verdict vm_fault(u64 at)
{
	pagetable_t area = at < MAXVA ? area_of(myproc()->pages, at) : NULL;
	pte_t *pte = area ? &area[PX(0, at)] : NULL;
	void *old, *page;

	if (!pte || !(*pte & PTE_COW))
		return VM_FORBIDDEN;
	old = table_of(*pte);
	if (page_is_shared(old)) {
		page = kalloc();
		if (!page)
			return VM_NO_MEMORY;
		memcpy(page, old, PGSIZE);
		*pte = PA2PTE(virt_to_phys(page)) | PTE_FLAGS(*pte);
		kfree(old);
	}
	*pte ^= PTE_COW | PTE_W;
	asm volatile("sfence.vma %0, zero" : : "r"(at) : "memory");
	return VM_MENDED;
}

/* ---- copying between the kernel and a user --------------------------------- */

static bool is_user_range(u64 at, u64 n)
{
	return at <= MAXVA && n <= MAXVA - at;
}

int copyin(void *to, uint64 from, uint64 n)
{
	return is_user_range(from, n) ? user_copy(to, (const void *)from, n) : -1;
}

int copyout(uint64 to, const void *from, uint64 n)
{
	return is_user_range(to, n) ? user_copy((void *)to, from, n) : -1;
}

int copyinstr(char *to, uint64 from, uint64 max)
{
	if (from >= MAXVA)
		return -1;
	/* It may end before MAXVA, where nothing is mapped, so no page follows. */
	return user_copy_string(to, (const char *)from, max);
}
