/* SPDX-License-Identifier: MIT */
/*
 * line.c - line editing for the shell: what each key does, and the history.
 *
 * Reads the device `keys`, one key per read(), so that nothing typed ahead is
 * taken from the program that runs next. What is on the screen after each key:
 * prompt, line, cursor at `at`. Typing at the end of a line prints just that
 * character; everything else paints the line anew.
 *
 *	arrows, home, end, ctrl-A, ctrl-E	move
 *	up, down, ctrl-N			history
 *	backspace, delete, ctrl-U, ctrl-K, ctrl-W	erase
 *	ctrl-C	a new line; ctrl-L  a clean screen; ctrl-D  the end
 *
 * ctrl-P is the kernel's and never comes here.
 *
 * Read next: sh.c.
 */
#include "kernel/types.h"
#include "user/line.h"
#include "user/user.h"

#define CTRL(c)	((c) - '@')
#define ESCAPE	27
#define DELETE	127

/* Keys that a terminal sends as several bytes. */
enum {
	/* clang-format off */
	KEY_UP = 256, KEY_DOWN, KEY_RIGHT, KEY_LEFT, KEY_HOME, KEY_END, KEY_DELETE,
	KEY_UNKNOWN, KEY_NONE = -1,
	/* clang-format on */
};

static char history[LINES_KEPT][LINE_BYTES];
static uint nr_history; /* lines ever added */

struct editor {
	int keys;
	const char *prompt;
	char *line;
	int length;
	int at;		      /* cursor, 0..length */
	uint shown;	      /* line of the history on show; nr_history: own one */
	char own[LINE_BYTES]; /* what was typed before the arrow went up */
};

static int read_byte(int keys)
{
	uchar c;

	return read(keys, &c, 1) == 1 ? c : KEY_NONE;
}

/* The rest of a key that began with ESC [ or ESC O. */
static int read_escape(int keys)
{
	static const int letters[] = { KEY_UP, KEY_DOWN, KEY_RIGHT, KEY_LEFT };
	int c = read_byte(keys), number = 0;

	if (c != '[' && c != 'O')
		return KEY_UNKNOWN;
	for (c = read_byte(keys); (c >= '0' && c <= '9') || c == ';'; c = read_byte(keys))
		number = c == ';' ? 0 : (number * 10 + c - '0') % 1000;
	if (c >= 'A' && c <= 'D')
		return letters[c - 'A'];
	if (c == 'H' || (c == '~' && (number == 1 || number == 7)))
		return KEY_HOME;
	if (c == 'F' || (c == '~' && (number == 4 || number == 8)))
		return KEY_END;
	return c == '~' && number == 3 ? KEY_DELETE : KEY_UNKNOWN;
}

/* Paint the line anew and put the cursor to its place. */
static void paint(struct editor *e)
{
	printf("\r%s%s\033[K", e->prompt, e->line);
	if (e->at < e->length)
		printf("\033[%dD", e->length - e->at);
}

static void erase(struct editor *e, int from, int to)
{
	memmove(e->line + from, e->line + to, e->length - to + 1);
	e->length -= to - from;
	e->at = from;
	paint(e);
}

static void insert(struct editor *e, char c)
{
	if (e->length + 1 >= LINE_BYTES)
		return;
	memmove(e->line + e->at + 1, e->line + e->at, e->length - e->at + 1);
	e->line[e->at++] = c;
	e->length++;
	if (e->at == e->length)
		write(1, &c, 1);
	else
		paint(e);
}

/* Show line @wanted of the history, or what was typed, if there is such a line. */
static void show(struct editor *e, uint wanted)
{
	uint oldest = nr_history > LINES_KEPT ? nr_history - LINES_KEPT : 0;

	if (wanted < oldest || wanted > nr_history)
		return;
	if (e->shown == nr_history)
		strcpy(e->own, e->line);
	e->shown = wanted;
	strcpy(e->line, wanted == nr_history ? e->own : history[wanted % LINES_KEPT]);
	e->length = e->at = strlen(e->line);
	paint(e);
}

static int word_start(const struct editor *e)
{
	int at = e->at;

	while (at > 0 && e->line[at - 1] == ' ')
		at--;
	while (at > 0 && e->line[at - 1] != ' ')
		at--;
	return at;
}

static void move(struct editor *e, int at)
{
	if (at >= 0 && at <= e->length) {
		e->at = at;
		paint(e);
	}
}

/* One key that edits. */
static void edit(struct editor *e, int key)
{
	switch (key) {
		/* clang-format off */
	case KEY_LEFT: case CTRL('B'):	move(e, e->at - 1); break;
	case KEY_RIGHT: case CTRL('F'):	move(e, e->at + 1); break;
	case KEY_HOME: case CTRL('A'):	move(e, 0); break;
	case KEY_END: case CTRL('E'):	move(e, e->length); break;
	case KEY_UP:			show(e, e->shown - 1); break;
	case KEY_DOWN: case CTRL('N'):	show(e, e->shown + 1); break;
	case CTRL('U'):			erase(e, 0, e->at); break;
	case CTRL('K'):			erase(e, e->at, e->length); break;
	case CTRL('W'):			erase(e, word_start(e), e->at); break;
	case DELETE: case CTRL('H'):
		if (e->at > 0)
			erase(e, e->at - 1, e->at);
		break;
	case KEY_DELETE: case CTRL('D'):
		/* clang-format on */
		if (e->at < e->length)
			erase(e, e->at, e->at + 1);
		break;
	case CTRL('L'):
		printf("\033[H\033[2J");
		paint(e);
		break;
	default:
		if (key >= ' ' && key < 256)
			insert(e, key);
	}
}

static void remember(const char *line)
{
	const char *last = nr_history ? history[(nr_history - 1) % LINES_KEPT] : "";

	if (*line && strcmp(line, last) != 0)
		strcpy(history[nr_history++ % LINES_KEPT], line);
}

int line_read(int keys, const char *prompt, char *line)
{
	struct editor e = { .keys = keys, .prompt = prompt, .line = line, .shown = nr_history };
	int key;

	line[0] = 0;
	printf("%s", prompt);
	for (;;) {
		key = read_byte(keys);
		if (key == ESCAPE)
			key = read_escape(keys);
		if (key == KEY_NONE || (key == CTRL('D') && !e.length)) {
			printf("\n");
			return -1;
		}
		if (key == '\r' || key == '\n')
			break;
		if (key == CTRL('C')) {
			line[0] = 0;
			e.length = 0;
			printf("^C");
			break;
		}
		edit(&e, key);
	}
	printf("\n");
	remember(line);
	return e.length;
}

const char *line_history(int idx)
{
	uint oldest = nr_history > LINES_KEPT ? nr_history - LINES_KEPT : 0;

	return oldest + idx < nr_history ? history[(oldest + idx) % LINES_KEPT] : 0;
}
