/* SPDX-License-Identifier: MIT */
/*
 * code.c - in which code may a thread be stopped by a signal?
 *
 * In all that is loaded, the program's and its libraries', but for objects that hold
 * locks, or depend on the kernel thread, in ways that cannot be seen: the C library, the dynamic linker, the unwinder, allocators, sanitizers, other
 * runtimes of threads. Such a place is left alone, and tried again later. So is an
 * object that was opened at run time and has thread-local variables: held.c does not
 * know where they are.
 *
 * Objects are listed at the start, and again when a thread is met in code that is not
 * on the list, which dlopen() has brought. That is asked of the dynamic linker in the
 * signal handler. It is no deadlock: its lock is recursive, and a thread that is met
 * outside of its code does not change its list. Code in no object is a just-in-time compiler's.
 *
 * Read next: preempt.c; locks.c, the locks that can be seen.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <link.h>
#include <string.h>

#include "ut.h"

#define SEGMENTS_MAX 256
#define STATIC_TLS_BYTES (1U << 20)	/* around the thread pointer */

/* Names of files, up to what follows a name: version, or suffix. */
static const char *const unsafe_names[] = {
	"libc",	       "libpthread",  "libdl",	  "librt",    "libanl",	     "libresolv",
	"libnss",      "ld",	      "ld64",	  "libgcc_s", "libunwind",   "libschedlab-uthreads",
	"libasan",     "libtsan",     "libubsan", "liblsan",  "libclang_rt", "libjemalloc",
	"libtcmalloc", "libmimalloc", "libgomp",  "libomp",   "libiomp",
};

struct segment {
	uintptr_t start, end;
	bool is_safe;
};

struct listing {
	struct segment segments[SEGMENTS_MAX]; /* executable ones; what is beyond, is not safe */
	u32 nr;
	bool has_program;
};

uintptr_t ut_linker_start, ut_linker_end;

/* Read in handlers: what was listed is complete before it is counted. */
static struct listing listings[2];
static u32 nr_listings; /* the last one is listings[nr % 2]; 0: none; atomic */
static sl_lock_t lock;	/* to make one */

static bool is_named(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	const char *file = slash ? slash + 1 : path;
	size_t bytes = strlen(name);

	return !strncmp(file, name, bytes) && !isalpha((unsigned char)file[bytes]) &&
	       file[bytes] != '+';
}

static bool is_unsafe_name(const char *path)
{
	for (u32 i = 0; i < sizeof(unsafe_names) / sizeof(unsafe_names[0]); i++) {
		if (is_named(path, unsafe_names[i]))
			return true;
	}
	return false;
}

/* Thread-local variables beside the thread pointer were there at the start. */
static bool has_own_tls(const struct dl_phdr_info *info)
{
	uintptr_t here = ut_thread_pointer();
	uintptr_t at = (uintptr_t)info->dlpi_tls_data;

	for (u32 i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			return !at || at - (here - STATIC_TLS_BYTES) > 2 * STATIC_TLS_BYTES;
	}
	return false;
}

static int add_object(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	struct listing *list = arg;
	/* The program comes first, whatever its name. */
	bool is_safe = !list->has_program ||
		       !(is_unsafe_name(info->dlpi_name) || (ut_is_smp && has_own_tls(info)));

	(void)bytes;
	list->has_program = true;
	for (u32 i = 0; i < info->dlpi_phnum && list->nr < SEGMENTS_MAX; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		list->segments[list->nr++] = (struct segment){ start, start + p->p_memsz, is_safe };
		if (is_named(info->dlpi_name, "ld")) {
			ut_linker_start = start;
			ut_linker_end = start + p->p_memsz;
		}
	}
	return list->nr == SEGMENTS_MAX;
}

/* Return: the segment that @pc lies in; NULL: none on the list. */
static const struct segment *find(const struct listing *list, uintptr_t pc)
{
	for (u32 i = 0; i < list->nr; i++) {
		if (pc - list->segments[i].start < list->segments[i].end - list->segments[i].start)
			return &list->segments[i];
	}
	return NULL;
}

/* List all objects anew. Return: false: another CPU is doing it. */
static bool make_listing(void)
{
	u32 nr = nr_listings + 1;

	if (!sl_trylock(&lock))
		return false;
	listings[nr % 2] = (struct listing){ 0 };
	dl_iterate_phdr(add_object, &listings[nr % 2]);
	smp_store_release(&nr_listings, nr);
	sl_unlock(&lock);
	return true;
}

/* Context: a handler. Return: whether a thread that is met there may be stopped. */
bool ut_code_may_stop(uintptr_t pc)
{
	u32 nr = smp_load_acquire(&nr_listings);
	const struct listing *list = &listings[nr % 2];
	const struct segment *in = find(list, pc);
	bool is_safe;

	if (!in && make_listing()) {
		nr = nr_listings;
		list = &listings[nr % 2];
		in = find(list, pc);
	}
	is_safe = in ? in->is_safe : list->nr < SEGMENTS_MAX;
	/* Another CPU may write this one when there is a newer one. */
	return is_safe && nr == smp_load_acquire(&nr_listings);
}

void ut_code_init(void)
{
	sl_lock_init(&lock);
	make_listing();
}
