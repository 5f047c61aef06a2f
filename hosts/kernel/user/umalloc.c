/* SPDX-License-Identifier: MIT */
/*
 * umalloc.c - malloc() and free() on top of sbrk().
 *
 * One list of free blocks in order of address. malloc() takes the first that
 * is large enough and cuts it; free() puts a block back at its place and joins
 * it with free neighbours, so that memory given back in any order becomes one
 * piece again. A block is at least its header; the header of a block in use
 * still tells its size.
 *
 * Read next: sh.c, the largest program.
 */
#include "kernel/types.h"
#include "user/user.h"

#pragma weak malloc
#pragma weak free

/* sbrk() is asked for this much at a time. */
#define GROW_BYTES 65536UL

struct block {
	unsigned long bytes; /* with this header; a multiple of its size */
	struct block *next;  /* in order of address; only while it is free */
};

static struct block *free_blocks;

void free(void *mem)
{
	struct block *block = (struct block *)mem - 1, *before = 0, *after;

	if (!mem)
		return;
	for (after = free_blocks; after && after < block; after = after->next)
		before = after;
	block->next = after;
	if (after && (char *)block + block->bytes == (char *)after) {
		block->bytes += after->bytes;
		block->next = after->next;
	}
	if (!before) {
		free_blocks = block;
	} else if ((char *)before + before->bytes == (char *)block) {
		before->bytes += block->bytes;
		before->next = block->next;
	} else {
		before->next = block;
	}
}

/* Get memory from the kernel that holds a block of @bytes; 0: there is none. */
static int grow(unsigned long bytes)
{
	unsigned long wanted = bytes > GROW_BYTES ? bytes : GROW_BYTES;
	struct block *block;
	char *end = sbrk(0);
	/* A program may have moved the end by itself, to any byte. */
	int gap = -(unsigned long)end % sizeof(struct block);

	if (end == SBRK_ERROR || wanted + gap > 0x7fffffff)
		return 0;
	end = sbrk(wanted + gap);
	if (end == SBRK_ERROR)
		return 0;
	block = (struct block *)(end + gap);
	block->bytes = wanted;
	free(block + 1);
	return 1;
}

void *malloc(uint bytes)
{
	unsigned long size = sizeof(struct block);
	unsigned long wanted = ((bytes + size - 1) / size + 1) * size;
	struct block **link, *block, *rest;

	do {
		for (link = &free_blocks; (block = *link); link = &block->next) {
			if (block->bytes < wanted)
				continue;
			if (block->bytes > wanted) {
				rest = (struct block *)((char *)block + wanted);
				rest->bytes = block->bytes - wanted;
				rest->next = block->next;
				block->bytes = wanted;
				*link = rest;
			} else {
				*link = block->next;
			}
			return block + 1;
		}
	} while (grow(wanted));
	return 0;
}
