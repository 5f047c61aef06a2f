/* SPDX-License-Identifier: MIT */
/*
 * objects_tool.c - drives player/objects.c from a script, for test_objects.py.
 *
 * Each line of standard input is one operation, of one of the tasks a to z on
 * one of the objects 0 to 9: "OP TASK OBJECT [NUMBER]". Each block, wake-up and
 * result is one line of output.
 */
#include <stdio.h>
#include <string.h>

#include "objects.h"

static struct sl_waiter waiters[26];
static struct sl_object objects[10];

static char name_of(const struct sl_waiter *w)
{
	return (char)('a' + (w - waiters));
}

void sl_wait_block(struct sl_waiter *w, const char *why)
{
	printf("%c blocks: %s\n", name_of(w), why);
}

void sl_wait_change(struct sl_waiter *w, const char *why)
{
	printf("%c now: %s\n", name_of(w), why);
}

void sl_wait_wake(struct sl_waiter *w, bool is_sync, const struct sl_waiter *by)
{
	printf("%c woken by %c%s\n", name_of(w), name_of(by), is_sync ? " sync" : "");
}

static int result_of(const char *op, struct sl_object *o, struct sl_waiter *w, u64 number)
{
	if (!strcmp(op, "lock"))
		return sl_object_lock(o, w);
	if (!strcmp(op, "unlock"))
		return sl_object_unlock(o, w);
	if (!strcmp(op, "send"))
		return sl_object_send(o, w, number);
	if (!strcmp(op, "recv"))
		return sl_object_recv(o, w, number);
	if (!strcmp(op, "arrive"))
		return sl_object_arrive(o, w);
	/* NUMBER: 1 + the lock's object, 0: none */
	if (!strcmp(op, "await"))
		return sl_object_await(o, w, number ? &objects[number - 1] : NULL);
	if (!strcmp(op, "signal"))
		sl_object_signal(o, w, number);
	else if (!strcmp(op, "size"))
		o->size = number;
	else if (!strcmp(op, "drop"))
		sl_waiter_drop(w);
	else
		return -1;
	return SL_OBJECT_DONE;
}

int main(void)
{
	char op[16];
	char task;
	unsigned int object;
	unsigned long long number;
	char line[80];

	for (u32 i = 0; i < 26; i++)
		waiters[i].task = &waiters[i];
	while (fgets(line, sizeof(line), stdin)) {
		int result;

		number = 0;
		if (sscanf(line, "%15s %c %u %llu", op, &task, &object, &number) < 3 ||
		    task < 'a' || task > 'z' || object > 9)
			return 2;
		result = result_of(op, &objects[object], &waiters[task - 'a'], number);
		if (result < 0)
			return 2;
		if (result == SL_OBJECT_ERROR)
			printf("%c error\n", task);
	}
	return 0;
}
