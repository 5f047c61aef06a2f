/* SPDX-License-Identifier: MIT */
/*
 * riscv.h - pages, Sv39 and the registers of a RISC-V hart.
 *
 * A user program needs PGSIZE, MAXVA and r_sp() of it; the kernel the rest.
 *
 * Read next: memlayout.h, what is where.
 */
#ifndef KERNEL_RISCV_H
#define KERNEL_RISCV_H

#define PGSIZE		4096
#define PGSHIFT		12
#define PGROUNDUP(size)	(((size) + PGSIZE - 1) & ~(PGSIZE - 1))
#define PGROUNDDOWN(a)	((a) & ~(PGSIZE - 1))

/* Sv39: three levels of 512 entries; the lower half of the addresses is user's. */
#define MAXVA		(1L << 38)
#define PX(level, va)	(((unsigned long)(va) >> (PGSHIFT + 9 * (level))) & 0x1ff)

#define PTE_V		(1L << 0)	/* valid */
#define PTE_R		(1L << 1)
#define PTE_W		(1L << 2)
#define PTE_X		(1L << 3)
#define PTE_U		(1L << 4)	/* user may touch it, and only user */
#define PTE_G		(1L << 5)	/* the same in every table */
#define PTE_A		(1L << 6)	/* accessed */
#define PTE_D		(1L << 7)	/* dirty */
#define PTE_COW		(1L << 8)	/* this kernel's: copy before the first write */

#define PA2PTE(pa)	((((unsigned long)(pa)) >> 12) << 10)
#define PTE2PA(pte)	(((pte) >> 10) << 12)
#define PTE_FLAGS(pte)	((pte) & 0x3ff)

#define SATP_SV39	(8L << 60)

#define SSTATUS_SIE	(1L << 1)	/* interrupts are on */
#define SSTATUS_SPIE	(1L << 5)	/* they were before the trap */
#define SSTATUS_FS	(3L << 13)	/* floating point: 0 off, 1 initial, */
#define SSTATUS_FS_INITIAL (1L << 13)	/* 2 clean, 3 dirty */
#define SSTATUS_FS_CLEAN (2L << 13)
#define SSTATUS_FS_DIRTY (3L << 13)
#define SSTATUS_SUM	(1L << 18)	/* the kernel may touch user pages */

#define SIE_SSIE	(1L << 1)	/* software: an IPI */
#define SIE_STIE	(1L << 5)	/* timer */
#define SIE_SEIE	(1L << 9)	/* devices, through the PLIC */

#define SCAUSE_INTERRUPT (1L << 63)

#ifndef __ASSEMBLER__

typedef unsigned long pte_t;
typedef unsigned long *pagetable_t; /* 512 entries */

/* Control and status registers, by name: csr_read(sstatus). */
#define csr_read(name)							\
	({								\
		unsigned long csr_value_;				\
		asm volatile("csrr %0, " #name : "=r"(csr_value_) : : "memory"); \
		csr_value_;						\
	})
#define csr_write(name, value)						\
	asm volatile("csrw " #name ", %0" : : "rK"((unsigned long)(value)) : "memory")
#define csr_set(name, bits)						\
	asm volatile("csrs " #name ", %0" : : "rK"((unsigned long)(bits)) : "memory")
#define csr_clear(name, bits)						\
	asm volatile("csrc " #name ", %0" : : "rK"((unsigned long)(bits)) : "memory")

/* The caller's stack pointer. */
static inline unsigned long r_sp(void)
{
	unsigned long sp;

	asm volatile("mv %0, sp" : "=r"(sp));
	return sp;
}

/* The clock of the board: 10 MHz on QEMU's virt. */
static inline unsigned long r_time(void)
{
	unsigned long ticks;

	asm volatile("rdtime %0" : "=r"(ticks));
	return ticks;
}

#endif
#endif
