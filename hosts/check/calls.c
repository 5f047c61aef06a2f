/* SPDX-License-Identifier: MIT */
/*
 * calls.c - what the policy is called for, and what it does then: --calls FILE.
 *
 *	TIME_NS <tab> CPU <tab> WORD <tab> PID <tab> NAME <tab> text
 *
 * WORD is `begin` and `end` of a callback, whose name and arguments, or value, the text
 * has; or what is done within it: `insert`, `take`, `move`, `kick`, `idle`; or `switch`, where
 * another CPU continues. A line is written whole, since a policy may end the process.
 *
 * Called by core/, through host_inline.h. Read next: python/schedlab/check/calls.py.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

#define LINE_BYTES 512

bool check_shows_calls;
static int calls_fd = -1;

/*
 * Names and kinds of what an operation gets after its task: d CPU or number, x flags, b
 * yes or no, t a task, f a function of the policy, s a text, u 64 bits, - what is not shown. The task
 * itself is `t` where it comes first.
 */
static const struct {
	const char *callback, *arguments;
} forms[] = {
	{ "select_cpu", "-tprev_cpu=d wake_flags=x" },
	{ "enqueue", "-tenq_flags=x" },
	{ "dequeue", "-tdeq_flags=x" },
	{ "stopping", "-trunnable=b" },
	{ "set_weight", "-tweight=d" },
	{ "dispatch", "cpu=d prev=t" },
	{ "update_idle", "cpu=d idle=b" },
	{ "cpu_release", "cpu=d" },
	{ "cpu_acquire", "cpu=d" },
	{ "cpu_online", "cpu=d" },
	{ "cpu_offline", "cpu=d" },
	{ "timer", "callback=f map=s key=u" },
};

static const char *arguments_of(const char *callback)
{
	for (u32 i = 0; i < ARRAY_SIZE(forms); i++) {
		if (!strcmp(forms[i].callback, callback))
			return forms[i].arguments;
	}
	return "";
}

static bool is_wanted(void)
{
	const struct sim_options *o = sim.options;

	return sim_now_ns >= o->calls_from_ns && (!o->calls_to_ns || sim_now_ns <= o->calls_to_ns);
}

static void write_line(const char *word, const struct sl_task *t, const char *text)
{
	char line[LINE_BYTES + 128];
	int nr = snprintf(line, sizeof(line), "%llu\t%d\t%s\t%d\t%s\t%s\n",
			  (unsigned long long)sim_now_ns, sim_cpu_idx, word, t ? t->p.pid : 0,
			  t ? t->p.comm : "", text);

	SL_ASSERT(nr > 0 && (u32)nr < sizeof(line));
	if (sim_file_write(calls_fd, line, (u64)nr))
		check_shows_calls = false;
}

static u32 add_argument(char *text, u32 nr_bytes, char kind, va_list *args)
{
	char name[CHECK_NAME_BYTES];
	const struct task_struct *p;
	int nr = 0;

	switch (kind) {
	case 'd':
		nr = snprintf(text, nr_bytes, "%d", va_arg(*args, s32));
		break;
	case 'b':
		nr = snprintf(text, nr_bytes, "%s", va_arg(*args, s32) ? "true" : "false");
		break;
	case 'x':
		nr = snprintf(text, nr_bytes, "0x%llx", va_arg(*args, u64));
		break;
	case 't':
		p = va_arg(*args, const struct task_struct *);
		nr = snprintf(text, nr_bytes, "%s[%d]", p ? p->comm : "none", p ? p->pid : 0);
		break;
	case 'f':
		nr = snprintf(text, nr_bytes, "%s", check_name(va_arg(*args, void *), name, "?"));
		break;
	case 's':
		nr = snprintf(text, nr_bytes, "%.64s", va_arg(*args, const char *));
		break;
	case 'u':
		nr = snprintf(text, nr_bytes, "%llu", va_arg(*args, unsigned long long));
		break;
	default:
		break;
	}
	return (u32)nr;
}

void check_callback_begins(const char *callback, const struct sl_task *t, ...)
{
	const char *at = arguments_of(callback);
	char text[LINE_BYTES];
	u32 nr = (u32)snprintf(text, sizeof(text), "%s", callback);
	va_list args;

	if (!is_wanted())
		return;
	va_start(args, t);
	if (at[0] == '-') {
		(void)va_arg(args, const struct task_struct *);
		at += 2;
	}
	for (bool is_first = true; *at; is_first = false) {
		/* Up to its `=`, and one letter. */
		nr += (u32)snprintf(text + nr, sizeof(text) - nr, "%s", is_first ? " " : ", ");
		while (*at != '=')
			text[nr++] = *at++;
		text[nr++] = *at++;
		nr += add_argument(text + nr, (u32)sizeof(text) - nr, *at++, &args);
		at += *at == ' ';
	}
	va_end(args);
	text[nr] = 0;
	write_line("begin", t, text);
}

void check_callback_ends(const char *callback, const s64 *value)
{
	char text[LINE_BYTES];

	if (!is_wanted())
		return;
	if (value)
		(void)snprintf(text, sizeof(text), "%s %lld", callback, (long long)*value);
	else
		(void)snprintf(text, sizeof(text), "%s", callback);
	write_line("end", NULL, text);
}

void check_does(const char *kind, const struct sl_task *t, const char *fmt, ...)
{
	char text[LINE_BYTES];
	va_list args;

	if (!is_wanted())
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	write_line(kind, t, text);
}

void check_open_calls(const struct sim_options *o)
{
	if (!o->calls)
		return;
	calls_fd = sim_file_create(o->calls);
	check_shows_calls = calls_fd >= 0;
	if (!check_shows_calls)
		sim_log("schedlab-sim-check: --calls %s: %s\n", o->calls, sim_error_text(-calls_fd));
}
