/* SPDX-License-Identifier: MIT */
/*
 * policy_wasm.c - linked to each policy that becomes a WebAssembly module.
 *
 * What a compiler calls by itself, in loops whose instructions are counted with the
 * policy's own: one that copies all memory by one instruction would cost nothing.
 *
 * Read next: python/schedlab/policy/wasm_build.py, which compiles it.
 */
#include <stddef.h>
#include <stdint.h>

/* For `extern ... CONFIG_HZ __kconfig`; the host sets it, as core/tasks.c its own. */
__attribute__((weak)) uint64_t CONFIG_HZ = 1000;

__attribute__((weak)) void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	/* Words as long as they are; WebAssembly allows any address. */
	for (; bytes >= 8; bytes -= 8, t += 8, f += 8)
		__builtin_memcpy_inline(t, f, 8);
	while (bytes--)
		*t++ = *f++;
	return to;
}

__attribute__((weak)) void *memmove(void *to, const void *from, size_t bytes)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	if (t < f || t >= f + bytes) {
		while (bytes--)
			*t++ = *f++;
	} else {
		while (bytes--)
			t[bytes] = f[bytes];
	}
	return to;
}

__attribute__((weak)) void *memset(void *to, int value, size_t bytes)
{
	unsigned char *t = to;
	uint64_t word = 0x0101010101010101ULL * (unsigned char)value;

	for (; bytes >= 8; bytes -= 8, t += 8)
		__builtin_memcpy_inline(t, &word, 8);
	while (bytes--)
		*t++ = (unsigned char)value;
	return to;
}

__attribute__((weak)) int memcmp(const void *a, const void *b, size_t bytes)
{
	const unsigned char *x = a, *y = b;

	for (; bytes; bytes--, x++, y++) {
		if (*x != *y)
			return *x < *y ? -1 : 1;
	}
	return 0;
}

/* What clang calls where a NULL is used: as on a machine that has no memory there. */
void __ubsan_handle_type_mismatch_minimal_abort(void)
{
	*(volatile char *)~0UL = 0;
}
