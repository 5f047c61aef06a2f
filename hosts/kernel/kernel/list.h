/* SPDX-License-Identifier: MIT */
/*
 * list.h - lists through the things themselves: nothing is allocated to be queued,
 * and whatever is in a list leaves it without a search.
 *
 *	anchor <-> link of the first <-> ... <-> link of the last <-> anchor
 *
 * thing_of(link, struct thing, member) is what a link is in. The lock of a list's
 * owner guards its links, too.
 *
 * Read next: wait.c, its main user.
 */
#ifndef KERNEL_LIST_H
#define KERNEL_LIST_H

#include <stddef.h>
#include <scx/types.h>

struct link {
	struct link *next; /* NULL: in no list */
	struct link *prev;
};

#define thing_of(at, type, member)					\
	((type *)((char *)(at) - offsetof(type, member)))

/* Every member of a list, in order; the body may not remove it. */
#define for_each_link(at, anchor)					\
	for (struct link *at = (anchor)->next; at != (anchor); at = at->next)

static inline void list_init(struct link *anchor)
{
	anchor->next = anchor->prev = anchor;
}

static inline bool list_is_empty(const struct link *anchor)
{
	return anchor->next == anchor;
}

/* Before @next: first in the list behind it; or last, if that is the anchor. */
static inline void list_add(struct link *next, struct link *link)
{
	link->next = next;
	link->prev = next->prev;
	link->prev->next = link;
	next->prev = link;
}

static inline void list_remove(struct link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link->next = NULL;
}

#endif
