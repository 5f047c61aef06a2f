/* SPDX-License-Identifier: MIT */
/*
 * cache.c - things by number: found by hash, reused least recently used first.
 *
 * Called by bio.c and inode.c. Must stay true: a number is in one thing at most; a
 * thing with a reference keeps its number.
 *
 * Read next: bio.c.
 */
#include "cache.h"

#include "mem.h"

void *cache_init(struct cache *cache, u32 nr, u64 bytes, const char *name)
{
	char *things = kalloc_pages(PGROUNDUP(nr * bytes) / PGSIZE);

	if (!things)
		return NULL;
	memset(things, 0, PGROUNDUP(nr * bytes));
	initlock(&cache->lock, name);
	waitq_init(&cache->has_unused, name);
	list_init(&cache->unused);
	for (u32 i = 0; i < nr; i++) {
		struct cached *thing = (void *)(things + i * bytes);

		initsleeplock(&thing->lock, name);
		list_add(&cache->unused, &thing->unused);
	}
	return things;
}

static struct cached **bucket_of(struct cache *cache, u32 number)
{
	return &cache->hash[number % CACHE_BUCKETS];
}

/* Put @number in place of what was unused longest. Context: cache->lock. */
static struct cached *recycle(struct cache *cache, u32 number)
{
	struct cached *thing, **at;

	if (list_is_empty(&cache->unused))
		return NULL;
	thing = thing_of(cache->unused.next, struct cached, unused);
	if (thing->number) {
		at = bucket_of(cache, thing->number);
		while (*at != thing)
			at = &(*at)->hash_next;
		*at = thing->hash_next;
	}
	at = bucket_of(cache, number);
	thing->number = number;
	thing->is_valid = false;
	thing->hash_next = *at;
	*at = thing;
	return thing;
}

/* As cache_get(). Context: cache->lock. */
static struct cached *get(struct cache *cache, u32 number)
{
	struct cached *thing = *bucket_of(cache, number);

	while (thing && thing->number != number)
		thing = thing->hash_next;
	if (!thing)
		thing = recycle(cache, number);
	if (thing && thing->refs++ == 0) {
		list_remove(&thing->unused);
		cache->nr_in_use++;
	}
	return thing;
}

struct cached *cache_get(struct cache *cache, u32 number)
{
	struct cached *thing;

	acquire(&cache->lock);
	thing = get(cache, number);
	release(&cache->lock);
	return thing;
}

struct cached *cache_wait(struct cache *cache, u32 number)
{
	struct cached *thing;

	acquire(&cache->lock);
	while (!(thing = get(cache, number)))
		sleep_on(&cache->has_unused, &cache->lock);
	release(&cache->lock);
	return thing;
}

void cache_keep(struct cache *cache, struct cached *thing)
{
	acquire(&cache->lock);
	thing->refs++;
	release(&cache->lock);
}

void cache_put(struct cache *cache, struct cached *thing)
{
	if (--thing->refs)
		return;
	list_add(&cache->unused, &thing->unused);
	cache->nr_in_use--;
	wake_one(&cache->has_unused);
}
