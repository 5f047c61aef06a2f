/* SPDX-License-Identifier: MIT */
/*
 * request.c - what the launcher is asked to do, as words.
 *
 * A request is a row of NUL-ended words: `timeout_ns=N`, and for each command
 * `command`, settings of the form KEY=VALUE, `argc=N`, and its N words. Its
 * writer has checked it for the user; here it is only kept from doing harm.
 *
 * Read next: command.c, where settings take effect.
 */
#include <stdlib.h>
#include <string.h>

#include "launch.h"

struct words {
	char *at;
	char *end;
};

static char *next_word(struct words *w)
{
	char *word = w->at;
	char *end;

	if (w->at == w->end)
		return NULL;
	end = memchr(word, '\0', (size_t)(w->end - word));
	if (!end)
		return NULL;
	w->at = end + 1;
	return word;
}

/* The value after KEY=, or NULL. */
static const char *value_of(const char *word, const char *key)
{
	size_t length = strlen(key);

	return strncmp(word, key, length) || word[length] != '=' ? NULL : word + length + 1;
}

static bool set_number(const char *word, const char *key, uint64_t *to)
{
	const char *value = value_of(word, key);

	if (value)
		*to = strtoull(value, NULL, 0);
	return value;
}

static bool set_text(const char *word, const char *key, const char **to)
{
	const char *value = value_of(word, key);

	if (value)
		*to = value;
	return value;
}

/* One word per CPU that the command may use. */
static bool set_cpu(const char *word, struct command *c)
{
	uint64_t cpu;

	if (!set_number(word, "cpu", &cpu) || cpu >= LAUNCH_CPUS_MAX)
		return false;
	c->cpus[cpu / 64] |= 1ULL << cpu % 64;
	c->has_cpus = true;
	return true;
}

static const char *parse_argv(struct words *w, uint64_t argc, struct command *c)
{
	if (!argc || argc > (uint64_t)(w->end - w->at))
		return "argc does not fit";
	c->argv = calloc(argc + 1, sizeof(*c->argv));
	if (!c->argv)
		return "out of memory";
	for (uint64_t i = 0; i < argc; i++) {
		c->argv[i] = next_word(w);
		if (!c->argv[i])
			return "fewer words than argc says";
	}
	return NULL;
}

/* Settings of one command, up to and with its argv. */
static const char *parse_command(struct words *w, struct command *c)
{
	uint64_t policy = 0, priority = 0, nice = 0, trial = 0, whole = 0, argc = 0;
	char *word;

	while ((word = next_word(w))) {
		if (set_number(word, "argc", &argc)) {
			c->policy = (uint32_t)policy;
			c->priority = (uint32_t)priority;
			c->nice = (int32_t)(int64_t)nice;
			c->is_trial = trial;
			c->is_whole = whole;
			if (c->priority >= LAUNCH_PRIORITY)
				return "the priority is the launcher's own";
			return parse_argv(w, argc, c);
		}
		if (!set_number(word, "policy", &policy) &&
		    !set_number(word, "priority", &priority) && !set_number(word, "nice", &nice) &&
		    !set_number(word, "runtime_ns", &c->runtime_ns) &&
		    !set_number(word, "deadline_ns", &c->deadline_ns) &&
		    !set_number(word, "period_ns", &c->period_ns) && !set_cpu(word, c) &&
		    !set_number(word, "trial", &trial) && !set_number(word, "whole", &whole) &&
		    !set_text(word, "folder", &c->folder) && !set_text(word, "input", &c->input) &&
		    !set_text(word, "output", &c->output) && !set_text(word, "errors", &c->errors))
			return "an unknown setting";
	}
	return "a command without argc";
}

const char *parse_request(char *text, size_t bytes, struct request *request)
{
	struct words w = { text, text + bytes };
	const char *wrong = NULL;
	char *word;

	*request = (struct request){ 0 };
	while (!wrong && (word = next_word(&w))) {
		if (set_number(word, "timeout_ns", &request->timeout_ns))
			continue;
		if (strcmp(word, "command"))
			wrong = "a word outside a command";
		else if (request->nr_commands == LAUNCH_COMMANDS_MAX)
			wrong = "too many commands";
		else
			wrong = parse_command(&w, &request->commands[request->nr_commands++]);
	}
	if (!wrong && w.at != w.end)
		wrong = "a word without its end";
	if (!wrong && !request->nr_commands)
		wrong = "no command";
	return wrong;
}
