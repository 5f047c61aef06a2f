/* SPDX-License-Identifier: MIT */
/*
 * text.c - a line of a printed trace, and the event in it.
 *
 * Three tools print the same tracepoints. They differ in the head of a line and,
 * where a tool formats the event itself, in its fields:
 *
 *	bash-812   [001] d..2. 5.000001: sched_switch: prev_comm=bash prev_pid=812 ...
 *	bash   812 [001]       5.000001: sched:sched_switch: bash:812 [120] S ==> ...
 *
 * A name may hold anything, also what looks like the rest of the line. So the head is
 * found from its CPU, "[001]", backward and forward, and the fields by patterns that try
 * every end of a name.
 *
 * Called by lines.c. Read next: sink.c.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "import.h"

#define FIELDS_OF_PATTERN 8

struct text {
	const char *at;
	const char *end;
};

struct head {
	uint32_t pid; /* 0: not known */
	uint64_t cpu;
	uint64_t t_ns;
	bool has_flags;
	bool is_in_interrupt;
	struct text event; /* its name */
	struct text rest;
};

/* What a pattern found: numbers, and texts where it has %s or %w. */
struct fields {
	int nr;
	uint64_t number[FIELDS_OF_PATTERN];
	struct text text[FIELDS_OF_PATTERN];
};

static bool has_flags;

bool text_has_flags(void)
{
	return has_flags;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Return: after the digits, or NULL if there are none. Too large is UINT64_MAX. */
static const char *read_number(const char *at, const char *end, uint64_t *value)
{
	const char *start = at;
	uint64_t v = 0;

	for (; at < end && is_digit(*at); at++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*at - '0'), &v)) {
			while (at < end && is_digit(*at))
				at++;
			v = UINT64_MAX;
			break;
		}
	}
	*value = v;
	return at == start ? NULL : at;
}

static const char *skip_spaces(const char *at, const char *end)
{
	while (at < end && is_space(*at))
		at++;
	return at;
}

/* ---- patterns -------------------------------------------------------------------- */

/*
 * %s: a text of any length, the shortest with which the rest fits; %*: the same, not
 * kept; %w: up to a space; %u, %d: a number. All else stands for itself.
 */
static bool match(const char *pattern, const char *at, const char *end, struct fields *f)
{
	int nr = f->nr;

	for (; *pattern; pattern++) {
		char kind = pattern[0] == '%' ? pattern[1] : '\0';
		const char *start = at;

		if (!kind) {
			if (at == end || *at++ != *pattern)
				return false;
			continue;
		}
		pattern++;
		if (kind == 's' || kind == '*') {
			f->nr = nr + (kind == 's');
			for (; at < end; at++) {
				at = memchr(at, pattern[1], (size_t)(end - at));
				if (!at)
					return false;
				f->text[nr] = (struct text){ start, at };
				if (match(pattern + 1, at, end, f))
					return true;
				f->nr = nr + (kind == 's');
			}
			return false;
		}
		if (kind == 'w') {
			while (at < end && !is_space(*at))
				at++;
		} else {
			at += kind == 'd' && at < end && *at == '-';
			at = read_number(at, end, &f->number[nr]);
			if (at && *start == '-')
				f->number[nr] = -f->number[nr];
		}
		if (!at || at == start)
			return false;
		f->text[nr++] = (struct text){ start, at };
	}
	f->nr = nr;
	return true;
}

/* The first of some patterns that fits. */
static bool match_any(const char *const patterns[], struct text text, struct fields *f)
{
	for (; *patterns; patterns++) {
		f->nr = 0;
		if (match(*patterns, text.at, text.end, f))
			return true;
	}
	return false;
}

/* ---- the head of a line -------------------------------------------------------- */

/*
 * Before the CPU: "bash-812 ", "bash   812 ", "bash 810/812 ", "bash-812 (  810) ".
 * Return: whether it is there. perf writes -1 for a task that it does not know.
 */
static bool read_pid(const char *line, const char *at, uint32_t *pid)
{
	const char *end, *first;
	uint64_t value;

	if (at == line || !is_space(at[-1]))
		return false;
	while (at > line && is_space(at[-1]))
		at--;
	if (at > line && at[-1] == ')') {
		for (at--; at > line && at[-1] != '('; at--) {
			if (!is_digit(at[-1]) && !is_space(at[-1]) && at[-1] != '-')
				return false;
		}
		if (at-- == line || at == line || !is_space(at[-1]))
			return false;
		while (at > line && is_space(at[-1]))
			at--;
	}
	end = at;
	while (at > line && is_digit(at[-1]))
		at--;
	if (at == end || at == line)
		return false;
	read_number(at, end, &value);
	first = at;
	if (at[-1] == '/') {
		for (first = at - 1; first > line && is_digit(first[-1]);)
			first--;
		if (first == at - 1 || first == line)
			first = at;
	}
	if (first[-1] != '-' && !is_space(first[-1]))
		return false;
	if (value == 1 && first[-1] == '-' && (first - 1 == line || is_space(first[-2])))
		value = 0;
	*pid = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
	return true;
}

/* "d..2. ", as ftrace and trace-cmd print them; perf does not. */
static const char *read_flags(const char *at, const char *end, struct head *h)
{
	const char *stop = at;
	bool is_in_interrupt = false;

	for (; stop < end && !is_space(*stop); stop++) {
		if (!is_word(*stop) && *stop != '.' && *stop != '#')
			return at;
		is_in_interrupt |= *stop == 'h' || *stop == 's' || *stop == 'H' || *stop == 'z' ||
				   *stop == 'Z';
	}
	if (stop - at < 4 || stop - at > 7 || stop == end)
		return at;
	h->has_flags = true;
	h->is_in_interrupt = is_in_interrupt;
	return skip_spaces(stop, end);
}

/* "5.000001": seconds, and up to nine places. */
static const char *read_time(const char *at, const char *end, uint64_t *t_ns)
{
	uint64_t seconds, part;
	const char *dot = read_number(at, end, &seconds), *stop;

	if (!dot || dot == end || *dot != '.')
		return NULL;
	stop = read_number(dot + 1, end, &part);
	if (!stop || stop - dot > 10 || stop == end || *stop != ':')
		return NULL;
	for (long places = stop - dot - 1; places < 9; places++)
		part *= 10;
	if (__builtin_mul_overflow(seconds, 1000000000, t_ns) ||
	    __builtin_add_overflow(*t_ns, part, t_ns))
		*t_ns = UINT64_MAX;
	return stop + 1;
}

/* From the '[' of the CPU on. Return: whether it is the head of an event. */
static bool read_from_cpu(const char *line, const char *at, const char *end, struct head *h)
{
	const char *word;
	uint64_t period;

	*h = (struct head){ 0 };
	if (!read_pid(line, at, &h->pid))
		return false;
	at = read_number(at + 1, end, &h->cpu);
	if (!at || end - at < 2 || *at != ']' || !is_space(at[1]))
		return false;
	at = skip_spaces(at + 1, end);
	at = read_flags(at, end, h);
	at = read_time(at, end, &h->t_ns);
	if (!at || at == end || !is_space(*at))
		return false;
	at = skip_spaces(at, end);
	/* perf may print a sample's period before the event. */
	word = read_number(at, end, &period);
	if (word && word < end && is_space(*word))
		at = skip_spaces(word, end);
	for (int i = 0; i < 2; i++) {
		word = at;
		while (at < end && is_word(*at))
			at++;
		if (at == word || at == end || *at != ':')
			return false;
		h->event = (struct text){ word, at++ };
		/* "sched:sched_switch:" */
		if (at == end || !is_word(*at))
			break;
		if (i)
			return false;
	}
	h->rest = (struct text){ skip_spaces(at, end), end };
	return true;
}

static bool read_head(const char *line, const char *end, struct head *h)
{
	const char *at = line;

	while ((at = memchr(at, '[', (size_t)(end - at)))) {
		if (read_from_cpu(line, at, end, h))
			return true;
		at++;
	}
	return false;
}

/* ---- events ---------------------------------------------------------------------- */

static uint32_t pid_of(uint64_t number)
{
	return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static int32_t cpu_of(uint64_t number)
{
	return number < INT32_MAX ? (int32_t)number : INT32_MAX;
}

static void put_name(const struct head *h, uint64_t pid, struct text name)
{
	sink_name(pid_of(pid), (uint16_t)h->cpu, name.at, (size_t)(name.end - name.at));
}

static struct event event_of(const struct head *h, uint8_t kind, uint64_t pid)
{
	return (struct event){
		.kind = kind,
		.cpu = (uint16_t)h->cpu,
		.t_ns = h->t_ns,
		.pid = pid_of(pid),
	};
}

/*
 * Why a task left: Linux's letters, such as "S", "R+", "D|K", or its number, as tools
 * print it that do not know the letters. Return: the bits that matter, -1: unknown.
 */
static int32_t read_state(struct text text)
{
	const char *at = text.at;
	bool is_hex = text.end - at > 2 && at[0] == '0' && (at[1] | 32) == 'x';
	int32_t state = 0;
	uint64_t number = 0;

	if (is_hex || is_digit(*at)) {
		at += is_hex ? 2 : 0;
		for (; at < text.end; at++) {
			if (is_hex ? !isxdigit((unsigned char)*at) : !is_digit(*at))
				return -1;
			number = number * (is_hex ? 16 : 10) +
				 (uint64_t)(is_digit(*at) ? *at - '0' : (*at | 32) - 'a' + 10);
			if (number > 0xffff)
				return -1;
		}
		return number & STATE_DEAD ? 0x10 : !!(number & STATE_BLOCKED);
	}
	for (; at < text.end; at++) {
		if (!*at)
			return -1;
		if (strchr("XZxE", *at))
			state = 0x10;
		else if (strchr("SDTtPIKWNw", *at) && !state)
			state = 1;
		else if (!strchr("R+|SDTtPIKWNw", *at))
			return -1;
	}
	/* "R+" is runnable, whatever else is in it. */
	return text.at[0] == 'R' && state == 1 ? 0 : state;
}

static const char *put_switch(const struct head *h)
{
	static const char *const patterns[] = {
		"prev_comm=%s prev_pid=%u prev_prio=%d prev_state=%w ==> "
		"next_comm=%s next_pid=%u next_prio=%d",
		"%s:%u [%d] %w ==> %s:%u [%d]",
		NULL,
	};
	struct event e = event_of(h, EVENT_SWITCH, 0);
	struct fields f;

	if (!match_any(patterns, h->rest, &f))
		return "sched_switch without its fields";
	e.pid = pid_of(f.number[1]);
	e.value = read_state(f.text[3]);
	if (e.value < 0)
		return "sched_switch with a state that is unknown";
	e.other = pid_of(f.number[5]);
	e.flags = (uint8_t)f.number[6];
	put_name(h, e.pid, f.text[0]);
	put_name(h, e.other, f.text[4]);
	return sink_put(e);
}

static const char *put_wake(const struct head *h)
{
	static const char *const patterns[] = {
		"comm=%s pid=%u prio=%d%* target_cpu=%u",
		"%s:%u [%d]%* CPU:%u",
		NULL,
	};
	struct event e = event_of(h, EVENT_WAKING, 0);
	struct fields f;

	if (!match_any(patterns, h->rest, &f))
		return "a wake-up without its fields";
	if (h->event.end[-1] == 'p')
		e.kind = EVENT_WAKEUP;
	else if (h->event.end[-1] == 'w')
		e.kind = EVENT_NEW;
	e.pid = pid_of(f.number[1]);
	e.other = h->pid;
	e.value = cpu_of(f.number[3]);
	e.flags = h->is_in_interrupt ? EVENT_IN_INTERRUPT : 0;
	has_flags |= h->has_flags;
	if (e.kind == EVENT_NEW)
		put_name(h, e.pid, f.text[0]);
	return sink_put(e);
}

static const char *put_migrate(const struct head *h)
{
	static const char *const patterns[] = {
		"comm=%* pid=%u prio=%d orig_cpu=%u dest_cpu=%u",
		NULL,
	};
	struct event e = event_of(h, EVENT_MIGRATE, 0);
	struct fields f;

	if (!match_any(patterns, h->rest, &f))
		return "sched_migrate_task without its fields";
	e.pid = pid_of(f.number[0]);
	e.other = pid_of(f.number[2]);
	e.value = cpu_of(f.number[3]);
	return sink_put(e);
}

static const char *put_fork(const struct head *h)
{
	static const char *const patterns[] = {
		"comm=%s pid=%u child_comm=%* child_pid=%u",
		NULL,
	};
	struct event e = event_of(h, EVENT_FORK, 0);
	struct fields f;

	if (!match_any(patterns, h->rest, &f))
		return "sched_process_fork without its fields";
	e.pid = pid_of(f.number[2]);
	e.other = pid_of(f.number[1]);
	/* The child has its parent's name. */
	put_name(h, e.other, f.text[0]);
	return sink_put(e);
}

static const char *put_exit(const struct head *h)
{
	static const char *const patterns[] = {
		"comm=%* pid=%u",
		"pid=%u",
		"%*:%u [",
		NULL,
	};
	struct fields f;

	if (!match_any(patterns, h->rest, &f))
		return "sched_process_exit without its fields";
	return sink_put(event_of(h, EVENT_EXIT, f.number[0]));
}

static const char *put_exec(const struct head *h)
{
	static const char *const patterns[] = {
		"filename=%* pid=%u old_pid=%u",
		NULL,
	};
	struct event e = event_of(h, EVENT_EXEC, 0);
	struct fields f;

	if (!match_any(patterns, h->rest, &f))
		return "sched_process_exec without its fields";
	e.pid = pid_of(f.number[0]);
	e.other = pid_of(f.number[1]);
	return sink_put(e);
}

static const char *put_runtime(const struct head *h)
{
	static const char *const patterns[] = {
		"comm=%* pid=%u runtime=%u", "pid=%u runtime=%u",    "%*:%u [%*runtime=%u",
		"%*:%u [%*runtime:%u",	     "%*:%u [%*runtime: %u", NULL,
	};
	struct event e = event_of(h, EVENT_RUNTIME, 0);
	struct fields f;

	if (!match_any(patterns, h->rest, &f))
		return "sched_stat_runtime without its fields";
	e.pid = pid_of(f.number[0]);
	e.other = f.number[1] < UINT32_MAX ? (uint32_t)f.number[1] : UINT32_MAX;
	/* A CPU that wakes a task for another one also does its accounts. */
	e.flags = e.pid == h->pid ? 0 : EVENT_ELSEWHERE;
	return sink_put(e);
}

static const struct {
	const char *name;
	const char *(*put)(const struct head *h);
} handlers[] = {
	{ "sched_switch", put_switch },	       { "sched_waking", put_wake },
	{ "sched_wakeup", put_wake },	       { "sched_wakeup_new", put_wake },
	{ "sched_migrate_task", put_migrate }, { "sched_process_fork", put_fork },
	{ "sched_process_exit", put_exit },    { "sched_process_exec", put_exec },
	{ "sched_stat_runtime", put_runtime },
};

#define NR_HANDLERS (sizeof(handlers) / sizeof(handlers[0]))

static const char *put(const struct head *h)
{
	size_t bytes = (size_t)(h->event.end - h->event.at);

	if (bytes < 6 || memcmp(h->event.at, "sched_", 6))
		return NULL;
	for (size_t i = 0; i < NR_HANDLERS; i++) {
		if (strlen(handlers[i].name) != bytes ||
		    memcmp(handlers[i].name, h->event.at, bytes))
			continue;
		if (h->cpu >= RECORD_CPUS_MAX)
			return sink_lost(h->cpu, 1);
		return handlers[i].put(h);
	}
	return NULL;
}

/* "CPU:2 [LOST 12 EVENTS]", trace-cmd's "[12 EVENTS DROPPED]", and perf's record. */
static bool read_lost(const char *line, const char *end, const char **wrong)
{
	static const char *const patterns[] = {
		"%*CPU:%u [LOST %u EVENTS]",
		"%*CPU:%u [%u EVENTS DROPPED]",
		"%*CPU:%u [%u EVENTS]",
		"%*CPU %u: [LOST %u EVENTS]",
		"%*CPU %u: [%u EVENTS DROPPED]",
		"%*[%u] %*PERF_RECORD_LOST lost %u",
		"%*[%u] %*PERF_RECORD_LOST_SAMPLES lost %u",
		NULL,
	};
	size_t bytes = (size_t)(end - line);
	struct fields f;

	if ((!memmem(line, bytes, " EVENTS", 7) && !memmem(line, bytes, "PERF_RECORD_LOST", 16)) ||
	    !match_any(patterns, (struct text){ line, end }, &f))
		return false;
	*wrong = sink_lost(f.number[0], f.number[1]);
	return true;
}

/* Whether a line looks like an event of the scheduler, but for its head. */
static bool is_headless(const char *line, const char *end)
{
	const char *at = line;

	while ((at = memmem(at, (size_t)(end - at), "sched_", 6))) {
		for (size_t i = 0; i < NR_HANDLERS; i++) {
			size_t bytes = strlen(handlers[i].name);

			if ((size_t)(end - at) > bytes + 1 && at[bytes] == ':' &&
			    is_space(at[bytes + 1]) && !memcmp(at, handlers[i].name, bytes))
				return true;
		}
		at++;
	}
	return false;
}

const char *text_line(const char *line, const char *end, bool is_page)
{
	const char *wrong = NULL;
	struct head h;

	if (read_head(line, end, &h))
		return put(&h);
	if (read_lost(line, end, &wrong) || is_page || line == end || *line == '#')
		return wrong;
	return is_headless(line, end) ? "an event without task, CPU and time before it" : NULL;
}
