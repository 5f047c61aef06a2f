/* SPDX-License-Identifier: MIT */
/*
 * console.c - the terminal: what is typed, and what processes print.
 *
 * One serial line has two device files. `console` gives lines: the kernel echoes
 * what is typed and lets it be corrected until the line is finished. `keys` gives
 * every key as it comes, without echo; the shell uses it to edit lines itself. Which
 * of the two gets what is typed, the shell says by writing an int to `keys`:
 *
 *	0	keys go to `keys`
 *	PID	keys make lines for `console`; ctrl-C ends process PID and all
 *		that it has started
 *
 * ctrl-P shows the state of the scheduler at any time.
 *
 * The interrupt handler puts characters into a ring. Three counters run through
 * it, and only their remainders are places in it:
 *
 *	   taken          ready           typed
 *	-----|--------------|---------------|----------> time
 *	     may be read      line being edited
 *
 * In line mode a newline or ctrl-D makes `ready` catch up with `typed`; in key
 * mode every key does. A ring that is full drops what comes.
 *
 * Must stay true: taken <= ready <= typed <= taken + TYPED_BYTES.
 * Read next: uart.c; user/line.c for the other line editor.
 */
#include <schedlab/machine.h>

#include "board.h"
#include "file.h"
#include "memlayout.h"
#include "print.h"
#include "proc.h"
#include "wait.h"

#define TYPED_BYTES	2048
#define CTRL(c)		((c) - '@')
#define DELETE		127

static struct {
	struct spinlock lock; /* guards all of it */
	struct waitq readers;
	char ring[TYPED_BYTES];
	u32 taken, ready, typed;
	bool gives_keys; /* key mode: the shell is reading */
	s32 foreground;	 /* the process that ctrl-C ends; 0: none */
} console;

/* Held while a piece of output is sent, so that pieces do not mix. */
static struct spinlock output_lock;

static char *ring_at(u32 count)
{
	return &console.ring[count % TYPED_BYTES];
}

/* ---- out ----------------------------------------------------------------- */

static int console_write(uint64 from, int n)
{
	char piece[128];
	int done = 0, now;

	while (done < n && !killed(myproc())) {
		now = min_u32(n - done, sizeof(piece));
		if (copyin(piece, from + done, now) < 0)
			return done ? done : -1;
		acquire(&output_lock);
		for (int i = 0; i < now; i++)
			uart_putc(piece[i]);
		release(&output_lock);
		done += now;
	}
	return done;
}

static void echo(char c)
{
	if (c == '\n' || c == '\t' || (c >= ' ' && c != DELETE)) {
		uart_putc(c);
	} else {
		uart_putc('^');
		uart_putc(c + '@');
	}
}

static void erase_one(void)
{
	char c = *ring_at(--console.typed);

	for (int i = c < ' ' && c != '\t' ? 2 : 1; i > 0; i--) {
		uart_putc('\b');
		uart_putc(' ');
		uart_putc('\b');
	}
}

/* ---- in ------------------------------------------------------------------ */

/* The lines, or keys, in the ring may be read now. */
static void make_ready(void)
{
	console.ready = console.typed;
	wake_all(&console.readers);
}

static void type_line_key(char c)
{
	switch (c) {
	case CTRL('U'):
		while (console.typed != console.ready)
			erase_one();
		return;
	case CTRL('H'):
	case DELETE:
		if (console.typed != console.ready)
			erase_one();
		return;
	case '\r':
		c = '\n';
	}
	/* The last place is kept for the end of the line. */
	if (console.typed - console.taken >= TYPED_BYTES - (c != '\n'))
		return;
	*ring_at(console.typed++) = c;
	if (c != CTRL('D'))
		echo(c);
	if (c == '\n' || c == CTRL('D'))
		make_ready();
}

/* One character. Return: the process that ctrl-C shall end, or 0. */
static s32 type_key(char c)
{
	s32 victim = 0;

	acquire(&console.lock);
	if (console.gives_keys) {
		if (console.typed - console.taken < TYPED_BYTES) {
			*ring_at(console.typed++) = c;
			make_ready();
		}
	} else if (c == CTRL('C') && console.foreground) {
		console.typed = console.ready;
		echo(c);
		uart_putc('\n');
		victim = console.foreground;
	} else {
		type_line_key(c);
	}
	release(&console.lock);
	return victim;
}

static void uart_interrupt(void *unused)
{
	s32 victim;
	int c;

	(void)unused;
	while ((c = uart_getc()) >= 0) {
		if (c == CTRL('P')) {
			sl_dump();
			continue;
		}
		victim = type_key(c);
		if (victim)
			proc_kill_family(victim);
	}
}

/* ---- the two device files ------------------------------------------------ */

/*
 * What is ready, up to the end of a line. ctrl-D ends it as well, and is taken
 * with it; one that comes first is the end of the file, and 0 is returned.
 */
static int read_typed(uint64 to, int n, bool in_lines)
{
	int done = 0;
	char c;

	acquire(&console.lock);
	while (console.taken == console.ready) {
		if (killed(myproc())) {
			release(&console.lock);
			return -1;
		}
		sleep_on(&console.readers, &console.lock);
	}
	while (done < n && console.taken != console.ready) {
		c = *ring_at(console.taken);
		if (in_lines && c == CTRL('D')) {
			/* After other characters it is left for the next read. */
			console.taken += done == 0;
			break;
		}
		if (copyout(to + done, &c, 1) < 0) {
			if (!done)
				done = -1;
			break;
		}
		console.taken++;
		done++;
		if (in_lines && c == '\n')
			break;
	}
	release(&console.lock);
	return done;
}

static int console_read(uint64 to, int n)
{
	return read_typed(to, n, true);
}

static int keys_read(uint64 to, int n)
{
	return read_typed(to, n, false);
}

static int keys_write(uint64 from, int n)
{
	s32 foreground;

	if (n != sizeof(foreground) || copyin(&foreground, from, sizeof(foreground)) < 0 ||
	    foreground < 0)
		return -1;
	acquire(&console.lock);
	console.gives_keys = foreground == 0;
	console.foreground = foreground;
	/* A line that was begun while a program ran goes to the shell as it is. */
	if (console.gives_keys)
		make_ready();
	release(&console.lock);
	return n;
}

void console_init(void)
{
	initlock(&console.lock, "console");
	initlock(&output_lock, "console output");
	waitq_init(&console.readers, "console");
	devsw[CONSOLE] = (struct devsw){ console_read, console_write };
	devsw[KEYS] = (struct devsw){ keys_read, keys_write };
	irq_register(UART0_IRQ, uart_interrupt, NULL);
	uart_listen();
}
