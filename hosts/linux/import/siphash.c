/* SPDX-License-Identifier: MIT */
/*
 * siphash.c - SipHash-2-4: a hash that cannot be looked up without its key.
 *
 * Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012. Used for the
 * names of an anonymous import, whose key is drawn for it and then forgotten.
 */
#include <string.h>

#include "import.h"

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void rounds(uint64_t v[4], int nr)
{
	while (nr--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

uint64_t siphash(const uint64_t key[2], const void *data, size_t bytes)
{
	uint64_t v[4] = {
		key[0] ^ 0x736f6d6570736575,
		key[1] ^ 0x646f72616e646f6d,
		key[0] ^ 0x6c7967656e657261,
		key[1] ^ 0x7465646279746573,
	};
	size_t at = 0;

	for (bool is_last = false; !is_last; at += 8) {
		size_t n = bytes - at < 8 ? bytes - at : 8;
		uint64_t word = 0;

		memcpy(&word, (const char *)data + at, n);
		is_last = n < 8;
		if (is_last)
			word |= (uint64_t)bytes << 56;
		v[3] ^= word;
		rounds(v, 2);
		v[0] ^= word;
	}
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
