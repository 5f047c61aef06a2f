/* SPDX-License-Identifier: MIT */
/*
 * policy_object.c - a policy as a shared object: loads it, and finds its symbols.
 *
 * Knobs lie in read-only memory; only the page that is written is made writable, and
 * it is private, so the file stays as it is for the next one to load it.
 *
 * Called by policy_file.c. Read next: hosts/sim/wasm.c, the same without a loader.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "policy_file.h"

int sl_policy_object_open(struct sl_policy_file *file, const char *path, char *why, u32 why_bytes)
{
	char full[4096];

	/* A name without a slash would be searched for in the system. */
	if (!realpath(path, full)) {
		int err = -errno;

		snprintf(why, why_bytes, "policy %s: %s", path, strerror(-err));
		return err;
	}
	file->handle = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (!file->handle) {
		snprintf(why, why_bytes, "policy %s: %s", path, dlerror());
		return -EINVAL;
	}
	return 0;
}

void sl_policy_file_close(struct sl_policy_file *file)
{
	dlclose(file->handle);
	file->handle = NULL;
	file->policy = NULL;
}

void *sl_policy_object_symbol(const struct sl_policy_file *file, const char *name, u64 *bytes)
{
	void *at = dlsym(file->handle, name);
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	*bytes = 0;
	if (at && dladdr1(at, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
	    ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT)
		*bytes = symbol->st_size;
	return at;
}

int sl_policy_object_make_writable(void *at, u64 bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)at & ~(page - 1);
	uintptr_t end = ((uintptr_t)at + bytes + page - 1) & ~(page - 1);

	return mprotect((void *)start, end - start, PROT_READ | PROT_WRITE) ? -errno : 0;
}

static int make_data_writable(struct dl_phdr_info *info, size_t bytes, void *of)
{
	(void)bytes;
	if (info->dlpi_addr != (uintptr_t)of)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type == PT_LOAD && !(h->p_flags & PF_X) &&
		    sl_policy_object_make_writable((void *)(info->dlpi_addr + h->p_vaddr),
						   h->p_memsz))
			return -EPERM;
	}
	return 1;
}

int sl_policy_object_make_all_writable(void *of)
{
	Dl_info info;

	return dladdr(of, &info) && dl_iterate_phdr(make_data_writable, info.dli_fbase) == 1 ?
		       0 :
		       -EPERM;
}
