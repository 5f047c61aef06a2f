/* SPDX-License-Identifier: MIT */
/*
 * print.c - formatted text without a C library: what bpf_printk() and
 * scx_bpf_error() accept.
 *
 * Conversions: d i u x X p s c %, with l, ll, z, h, a width, 0 and -; s with the most
 * characters after a point. Anything else is copied as it stands. Never writes past the
 * buffer, always ends it. The last chapter.
 */
#include "../core/core.h"

struct out {
	char *to;
	u32 bytes;
	u32 used;
};

static void put(struct out *o, char c)
{
	if (o->used + 1 < o->bytes)
		o->to[o->used++] = c;
}

struct spec {
	u32 width;
	u32 max; /* characters of a string */
	bool zero;
	bool left;
	int longs;
};

static void put_padded(struct out *o, const char *text, u32 len, const struct spec *spec)
{
	u32 pad = spec->width > len ? spec->width - len : 0;
	u32 start = 0;

	if (spec->zero && !spec->left && len && text[0] == '-') {
		put(o, '-');
		start = 1;
	}
	for (u32 i = 0; i < pad && !spec->left; i++)
		put(o, spec->zero ? '0' : ' ');
	for (u32 i = start; i < len; i++)
		put(o, text[i]);
	for (u32 i = 0; i < pad && spec->left; i++)
		put(o, ' ');
}

static void put_number(struct out *o, u64 value, bool is_negative, u32 base, bool is_upper,
		       const struct spec *spec)
{
	const char *digits = is_upper ? "0123456789ABCDEF" : "0123456789abcdef";
	char text[24];
	u32 at = sizeof(text);

	do {
		text[--at] = digits[value % base];
		value /= base;
	} while (value);
	if (is_negative)
		text[--at] = '-';
	put_padded(o, text + at, (u32)sizeof(text) - at, spec);
}

static const char *read_spec(const char *fmt, struct spec *spec)
{
	for (;; fmt++) {
		if (*fmt == '0')
			spec->zero = true;
		else if (*fmt == '-')
			spec->left = true;
		else if (*fmt != '#' && *fmt != '+' && *fmt != ' ')
			break;
	}
	for (; *fmt >= '0' && *fmt <= '9'; fmt++)
		spec->width = (spec->width * 10 + (u32)(*fmt - '0')) % 1000;
	if (*fmt == '.') {
		spec->max = 0;
		for (fmt++; *fmt >= '0' && *fmt <= '9'; fmt++)
			spec->max = (spec->max * 10 + (u32)(*fmt - '0')) % 10000;
	}
	for (;; fmt++) {
		if (*fmt == 'l')
			spec->longs++;
		else if (*fmt == 'z')
			spec->longs = 1;
		else if (*fmt != 'h')
			return fmt;
	}
}

static void put_text(struct out *o, const char *text, const struct spec *spec)
{
	u32 len = 0;

	if (!text)
		text = "(null)";
	while (len < spec->max && text[len])
		len++;
	put_padded(o, text, len, spec);
}

/* Return: bytes written, without the ending NUL. */
u32 sl_format(char *to, u32 bytes, const char *fmt, __builtin_va_list args)
{
	struct out o = { .to = to, .bytes = bytes };
	s64 value;
	char letter;

	for (; *fmt; fmt++) {
		struct spec spec = { .max = ~0U };

		if (*fmt != '%') {
			put(&o, *fmt);
			continue;
		}
		fmt = read_spec(fmt + 1, &spec);
		switch (*fmt) {
		case 'd':
		case 'i':
			value = spec.longs > 1 ? __builtin_va_arg(args, long long) :
				spec.longs     ? __builtin_va_arg(args, long) :
						 __builtin_va_arg(args, int);
			put_number(&o, value < 0 ? 0 - (u64)value : (u64)value, value < 0, 10,
				   false, &spec);
			break;
		case 'u':
		case 'x':
		case 'X':
			put_number(&o,
				   spec.longs > 1 ? __builtin_va_arg(args, unsigned long long) :
				   spec.longs	  ? __builtin_va_arg(args, unsigned long) :
						    __builtin_va_arg(args, unsigned int),
				   false, *fmt == 'u' ? 10 : 16, *fmt == 'X', &spec);
			break;
		case 'p':
			put_number(&o, (u64)(uintptr_t)__builtin_va_arg(args, void *), false, 16,
				   false, &spec);
			break;
		case 's':
			put_text(&o, __builtin_va_arg(args, const char *), &spec);
			break;
		case 'c':
			letter = (char)__builtin_va_arg(args, int);
			put_padded(&o, &letter, 1, &spec);
			break;
		case '\0':
			fmt--;
			break;
		default:
			put(&o, *fmt);
		}
	}
	if (bytes)
		to[o.used] = 0;
	return o.used;
}

u32 sl_print_to(char *to, u32 bytes, const char *fmt, ...)
{
	__builtin_va_list args;
	u32 used;

	__builtin_va_start(args, fmt);
	used = sl_format(to, bytes, fmt, args);
	__builtin_va_end(args);
	return used;
}

/* The arguments of @fmt are in @data. Return: as snprintf(), with the 0 at the end. */
long bpf_snprintf(char *to, u32 bytes, const char *fmt, const u64 *data, u32 data_bytes)
{
	u64 d[12] = { 0 };

	if (data_bytes > sizeof(d) || data_bytes % sizeof(u64))
		return -EINVAL;
	for (u32 i = 0; i < data_bytes / sizeof(u64); i++)
		d[i] = data[i];
	return sl_print_to(to, bytes, fmt, d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8],
			   d[9], d[10], d[11]) +
	       1;
}

/* See include/scx/note.h. Return: whether @fmt is a note. */
static bool is_note(const char *fmt)
{
	static const char word[] = "schedlab-note ";

	return !__builtin_strncmp(fmt, word, sizeof(word) - 1);
}

/* A policy's bpf_printk(): one line to the host, or a NOTE record. */
long sl_printk(const char *fmt, ...)
{
	struct sl_cpu *this_cpu = sl_this_cpu();
	struct sl_task *t = this_cpu->callback_task;
	char line[256];
	__builtin_va_list args;
	u32 used;
	u64 note;

	__builtin_va_start(args, fmt);
	if (is_note(fmt)) {
		note = (u64)__builtin_va_arg(args, u32) << 32;
		note |= __builtin_va_arg(args, u32);
		__builtin_va_end(args);
		sl_host_record(SL_RECORD_NOTE, t ? t->p.pid : 0, this_cpu->id, 0, note);
		return 0;
	}
	used = sl_format(line, sizeof(line), fmt, args);
	__builtin_va_end(args);
	if (used && line[used - 1] == '\n')
		line[used - 1] = 0;
	sl_host_print(line);
	return used;
}
