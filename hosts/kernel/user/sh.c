/* SPDX-License-Identifier: MIT */
/*
 * sh.c - the shell.
 *
 *	list:		pipeline { (";" | "&") pipeline }
 *	pipeline:	command { "|" command }
 *	command:	{ word | redirection } | "(" list ")" { redirection }
 *	redirection:	("<" | ">" | ">>") word
 *
 * Words may be quoted with '...', "..." or a backslash; # begins a comment. A
 * line becomes a tree in a fixed array first, and is run only if all of it was
 * understood. Only groups make the parser call itself, and nothing makes a process
 * that runs a tree do so: a line of 40 pipes must not overflow a stack of one page.
 * A command that ends by itself is a child of the shell; in front,
 * ctrl-C ends it and all that it has started. Started as `sh FILE` it reads
 * commands from the file, as `sh -c TEXT` from the text.
 *
 * Read next: line.c, how a line is typed; kernel/console.c, what keys are.
 */
#include "kernel/types.h"
#include "kernel/param.h"
#include "kernel/stat.h"
#include "kernel/fcntl.h"
#include "user/line.h"
#include "user/user.h"

#define PROMPT		"$ "
#define NODES_MAX	64
#define REDIRECTS_MAX	8
#define GROUPS_MAX	10	/* one within the other; a stack is one page */

enum kind { RUN, GROUP, PIPE, LIST, BACK };

struct redirect {
	int fd;
	const char *path;
	int flags;
};

struct node {
	enum kind kind;
	struct node *left; /* GROUP and BACK have this one only */
	struct node *right;
	char *argv[MAXARG + 1];
	int nr_args;
	struct redirect redirects[REDIRECTS_MAX];
	int nr_redirects;
};

/* ---- from text to tree --------------------------------------------------- */

static struct node nodes[NODES_MAX];
static int nr_nodes;
static char words[2 * LINE_BYTES]; /* all words of the line, each with its 0 */
static int nr_word_bytes;
static int nr_open_groups;
static const char *at;	    /* what has not been read yet */
static const char *mistake; /* the first; 0: none so far */

static struct node *parse_list(void);

static struct node *syntax(const char *what)
{
	if (!mistake)
		mistake = what;
	return 0;
}

static struct node *new_node(enum kind kind, struct node *left, struct node *right)
{
	struct node *node = &nodes[nr_nodes];

	if (nr_nodes == NODES_MAX)
		return syntax("the line has too many commands");
	nr_nodes++;
	memset(node, 0, sizeof(*node));
	node->kind = kind;
	node->left = left;
	node->right = right;
	return node;
}

/* The next character that is not blank, without taking it; 0 at the end. */
static char peek(void)
{
	while (*at && strchr(" \t\r\n", *at))
		at++;
	return *at == '#' ? 0 : *at;
}

static int take(char c)
{
	if (peek() != c)
		return 0;
	at++;
	return 1;
}

static int is_word(char c)
{
	return c && !strchr("<>|&;()", c);
}

/* One word, without its quotes. */
static char *parse_word(void)
{
	char *word = words + nr_word_bytes, quote = 0, c;

	if (!is_word(peek())) {
		syntax("a word is missing");
		return 0;
	}
	for (; (c = *at); at++) {
		if (quote ? c == quote : c == '\'' || c == '"') {
			quote = quote ? 0 : c;
			continue;
		}
		if (!quote && (strchr(" \t\r\n", c) || !is_word(c)))
			break;
		if (c == '\\' && quote != '\'' && at[1])
			c = *++at;
		if (nr_word_bytes + 2 > (int)sizeof(words)) {
			syntax("the line is too long");
			return 0;
		}
		words[nr_word_bytes++] = c;
	}
	if (quote)
		syntax("a quote is not closed");
	words[nr_word_bytes++] = 0;
	return word;
}

static void parse_redirect(struct node *node)
{
	struct redirect *redirect = &node->redirects[node->nr_redirects];

	if (node->nr_redirects == REDIRECTS_MAX) {
		syntax("too many redirections");
		return;
	}
	if (*at++ == '<') {
		*redirect = (struct redirect){ 0, 0, O_RDONLY };
	} else {
		*redirect = (struct redirect){ 1, 0, O_WRONLY | O_CREATE | O_TRUNC };
		if (*at == '>') {
			at++;
			redirect->flags = O_WRONLY | O_CREATE | O_APPEND;
		}
	}
	redirect->path = parse_word();
	node->nr_redirects++;
}

static struct node *parse_command(void)
{
	struct node *node;

	if (take('(')) {
		if (++nr_open_groups > GROUPS_MAX)
			return syntax("too many ( within each other");
		node = new_node(GROUP, parse_list(), 0);
		nr_open_groups--;
		if (!take(')'))
			return syntax("a ) is missing");
	} else {
		node = new_node(RUN, 0, 0);
	}
	while (node && !mistake) {
		if (peek() == '<' || peek() == '>') {
			parse_redirect(node);
		} else if (is_word(peek())) {
			if (node->kind == GROUP)
				return syntax("a ; is missing after )");
			if (node->nr_args == MAXARG)
				return syntax("too many arguments");
			node->argv[node->nr_args++] = parse_word();
		} else {
			break;
		}
	}
	if (node && node->kind == RUN && !node->nr_args)
		return syntax("a command is missing");
	return node;
}

static struct node *parse_pipeline(void)
{
	struct node *node = parse_command();

	while (!mistake && take('|'))
		node = new_node(PIPE, node, parse_command());
	return node;
}

static struct node *parse_list(void)
{
	struct node *list = 0, *next;

	while (!mistake && peek() && peek() != ')') {
		next = parse_pipeline();
		if (!mistake && take('&'))
			next = new_node(BACK, next, 0);
		else if (!mistake && peek() && peek() != ')' && !take(';'))
			syntax("a ; is missing before (");
		list = list ? new_node(LIST, list, next) : next;
	}
	return list;
}

/* The tree of a line; 0 when it is empty or wrong, and then *@is_wrong says. */
static struct node *parse(const char *line, int *is_wrong)
{
	struct node *tree;

	nr_nodes = nr_word_bytes = nr_open_groups = 0;
	mistake = 0;
	at = line;
	tree = parse_list();
	if (!mistake && peek())
		syntax("there is a ) too many");
	if (mistake)
		fprintf(2, "sh: %s\n", mistake);
	*is_wrong = mistake != 0;
	return mistake ? 0 : tree;
}

/* ---- from tree to processes ---------------------------------------------- */

static int keys = -1; /* device of a shell that a person types into */

/*
 * In a child in front: from now on keys are lines for it and what it starts, and
 * ctrl-C ends all of them. Only the shell itself keeps the device open.
 */
static void keys_to_programs(void)
{
	int pid = getpid();

	if (keys >= 0) {
		write(keys, &pid, sizeof(pid));
		close(keys);
		keys = -1;
	}
}

static void keys_to_shell(void)
{
	int none = 0;

	if (keys >= 0)
		write(keys, &none, sizeof(none));
}

static int fork_or_say(void)
{
	int pid = fork();

	if (pid < 0)
		fprintf(2, "sh: fork failed: too many processes, or no memory\n");
	return pid;
}

/* Wait for @pid; others that end meanwhile ran in the background. */
static int wait_for(int pid)
{
	int status = -1, child;

	do {
		child = wait(&status);
		if (child >= 0 && child != pid && keys >= 0)
			fprintf(2, "[%d] ended, status %d\n", child, status);
	} while (child >= 0 && child != pid);
	return child < 0 ? -1 : status;
}

static void redirect(const struct node *node)
{
	for (int i = 0; i < node->nr_redirects; i++) {
		const struct redirect *to = &node->redirects[i];

		close(to->fd);
		if (open(to->path, to->flags) != to->fd)
			fail("sh: cannot open %s", to->path);
	}
}

/* A name without / is looked for here and then in the root folder. */
static void run_program(struct node *node)
{
	char path[MAXPATH];

	exec(node->argv[0], node->argv);
	if (!strchr(node->argv[0], '/')) {
		snprintf(path, sizeof(path), "/%s", node->argv[0]);
		exec(path, node->argv);
	}
	fprintf(2, "sh: cannot run %s; `help` says what there is\n", node->argv[0]);
	exit(127);
}

/* Return: in the two children, what each shall run. */
static struct node *run_pipe(struct node *node)
{
	int fds[2], left, right, status;

	if (pipe(fds) < 0)
		fail("sh: no pipe");
	for (int side = 1; side >= 0; side--) {
		int pid = fork_or_say();

		if (pid == 0) {
			close(side);
			dup(fds[side]);
			close(fds[0]);
			close(fds[1]);
			return side ? node->left : node->right;
		}
		*(side ? &left : &right) = pid;
	}
	close(fds[0]);
	close(fds[1]);
	/* The status of a pipeline is that of its last command. */
	status = wait_for(right);
	if (left > 0)
		wait_for(left);
	exit(status);
}

/* In a process of its own. */
static void __attribute__((noreturn)) run_and_exit(struct node *node)
{
	int pid;

	while (node) {
		redirect(node);
		switch (node->kind) {
		case RUN:
			run_program(node);
			break;
		case GROUP:
			node = node->left;
			break;
		case PIPE:
			node = run_pipe(node);
			break;
		case LIST:
			pid = fork_or_say();
			if (pid > 0)
				wait_for(pid);
			node = pid == 0 ? node->left : node->right;
			break;
		case BACK:
			/* The one in between ends at once, so that init gets the child. */
			node = fork_or_say() == 0 ? node->left : 0;
			break;
		}
	}
	exit(0);
}

/* ---- what the shell does itself ------------------------------------------ */

static void print_help(void)
{
	printf("Programs are in /; `ls /` lists all of them. Some to begin with:\n"
	       "  ps, top             who runs, and how much of the CPU each has had\n"
	       "  sched               the policies and their knobs; `sched mlfq` changes to one\n"
	       "  nice 5 ps, time ps  run a program at another weight; how long it took\n"
	       "  ls, cat, echo, grep, wc, mkdir, rm, ln, kill\n"
	       "  timings, bench, checks, chaos  measure and test the kernel\n"
	       "  poweroff            ends the machine\n"
	       "The shell knows a | b, a > file, a >> file, a < file, a &, a ; b, (a ; b), and\n"
	       "cd, history, wait, exit, help. Arrows edit the line and bring old ones back; ctrl-C\n"
	       "ends what is in front, ctrl-D is the end of input, ctrl-P shows the scheduler.\n");
}

/* Return: whether it was such a command; *@status is then set. */
static int run_builtin(struct node *node, int *status)
{
	char **argv = node->argv;

	*status = 0;
	if (strcmp(argv[0], "cd") == 0) {
		if (node->nr_args > 2 || chdir(node->nr_args > 1 ? argv[1] : "/") < 0) {
			fprintf(2, "sh: cannot change to %s; usage: cd [FOLDER]\n",
				node->nr_args > 1 ? argv[1] : "/");
			*status = 1;
		}
	} else if (strcmp(argv[0], "exit") == 0) {
		exit(node->nr_args > 1 ? atoi(argv[1]) : 0);
	} else if (strcmp(argv[0], "history") == 0) {
		for (int i = 0; line_history(i); i++)
			printf("%4d  %s\n", i + 1, line_history(i));
	} else if (strcmp(argv[0], "wait") == 0) {
		wait_for(-1);
	} else if (strcmp(argv[0], "help") == 0) {
		print_help();
	} else {
		return 0;
	}
	return 1;
}

/* In the shell itself, which lives on. Return: the status. */
static int run(struct node *node)
{
	int status, pid;

	if (node->kind == LIST) {
		run(node->left);
		return run(node->right);
	}
	if (node->kind == RUN && !node->nr_redirects && run_builtin(node, &status))
		return status;
	pid = fork_or_say();
	if (pid < 0)
		return -1;
	if (node->kind == BACK) {
		if (pid == 0) {
			close(keys);
			keys = -1;
			run_and_exit(node->left);
		}
		if (keys >= 0)
			fprintf(2, "[%d]\n", pid);
		return 0;
	}
	if (pid == 0) {
		keys_to_programs();
		run_and_exit(node);
	}
	status = wait_for(pid);
	keys_to_shell();
	return status;
}

static int run_line(const char *line)
{
	int is_wrong;
	struct node *tree = parse(line, &is_wrong);

	return tree ? run(tree) : is_wrong * 2;
}

/* A line from the standard input, however long; -1 at the end. */
static int read_plain(char *line)
{
	gets(line, LINE_BYTES);
	if (line[0] && strlen(line) == LINE_BYTES - 1 && line[LINE_BYTES - 2] != '\n')
		fail("sh: a line has more than %d characters", LINE_BYTES - 2);
	return line[0] ? 0 : -1;
}

static int run_text(const char *text)
{
	if (strlen(text) >= LINE_BYTES)
		fail("sh: the command has more than %d characters", LINE_BYTES - 1);
	return run_line(text);
}

int main(int argc, char **argv)
{
	static char line[LINE_BYTES];
	struct stat input;
	int status = 0;

	if (argc > 2 && strcmp(argv[1], "-c") == 0)
		return run_text(argv[2]);
	if (argc > 1) {
		close(0);
		if (open(argv[1], O_RDONLY) != 0)
			fail("sh: cannot open %s", argv[1]);
	}
	if (fstat(0, &input) == 0 && input.type == T_DEVICE) {
		keys = open("/keys", O_RDWR);
		keys_to_shell();
	}
	while ((keys >= 0 ? line_read(keys, PROMPT, line) : read_plain(line)) >= 0)
		status = run_line(line);
	return status;
}
