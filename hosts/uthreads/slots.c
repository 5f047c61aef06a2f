/* SPDX-License-Identifier: MIT */
/*
 * slots.c - thread-local slots: a value per thread under a key of the program.
 *
 * The compiler's own thread-local variables belong to kernel threads, and a
 * thread that moves finds another one's.
 *
 * Read next: thread.c, which ends them.
 */
#include <errno.h>
#include <stdlib.h>

#include "ut.h"

#define ROUNDS_MAX 4	/* an end may set slots again */

static struct key {
	bool is_used;
	void (*end)(void *value);
} keys[UT_KEYS_MAX];
static sl_lock_t lock;

int ut_key_create(ut_key *key, void (*end)(void *value))
{
	int err = -EAGAIN;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	sl_lock(&lock);
	for (u32 i = 0; i < UT_KEYS_MAX && err; i++) {
		if (keys[i].is_used)
			continue;
		keys[i] = (struct key){ true, end };
		*key = i;
		err = 0;
	}
	sl_unlock(&lock);
	ut_enable();
	return err;
}

/* The values of threads that live stay in the slot for whoever has it next. */
int ut_key_delete(ut_key key)
{
	int err = -EINVAL;

	if (!ut_this_cpu())
		return -EPERM;
	ut_disable();
	sl_lock(&lock);
	if (key < UT_KEYS_MAX && keys[key].is_used) {
		keys[key] = (struct key){ false, NULL };
		err = 0;
	}
	sl_unlock(&lock);
	ut_enable();
	return err;
}

int ut_setspecific(ut_key key, void *value)
{
	struct ut_thread *self;
	int err = 0;

	if (!ut_this_cpu())
		return -EPERM;
	if (key >= UT_KEYS_MAX || !sl_load(&keys[key].is_used))
		return -EINVAL;
	ut_disable();
	self = ut_this_cpu()->curr;
	if (!self->slots)
		self->slots = calloc(UT_KEYS_MAX, sizeof(void *));
	if (self->slots)
		self->slots[key] = value;
	else
		err = -ENOMEM;
	ut_enable();
	return err;
}

void *ut_getspecific(ut_key key)
{
	struct ut_thread *self;
	void *value = NULL;

	if (!ut_this_cpu() || key >= UT_KEYS_MAX)
		return NULL;
	ut_disable();
	self = ut_this_cpu()->curr;
	if (self->slots)
		value = self->slots[key];
	ut_enable();
	return value;
}

/* Context: the thread that ends; preemption enabled, since ends are the program's. */
void ut_slots_end(void)
{
	struct ut_thread *self;
	bool has_any = true;

	ut_disable();
	self = ut_this_cpu()->curr;
	ut_enable();
	if (!self->slots)
		return;
	for (u32 round = 0; round < ROUNDS_MAX && has_any; round++) {
		has_any = false;
		for (u32 i = 0; i < UT_KEYS_MAX; i++) {
			void *value = self->slots[i];
			void (*end)(void *) = keys[i].end;

			if (!value || !end)
				continue;
			self->slots[i] = NULL;
			has_any = true;
			end(value);
		}
	}
	ut_disable();
	free(self->slots);
	self->slots = NULL;
	ut_enable();
}
