/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BPF_FAULTS_H
#define COMMON_BPF_FAULTS_H

#include <stdbool.h>

/*
 * From the handler of SIGFPE: give a division its result as BPF has it, and go on after it.
 * Return: whether it was one.
 */
bool sl_divide_as_bpf(void *context);

/*
 * From the handler of SIGSEGV: an access that begins at NULL goes to @first_page of the policy's
 * arena, and is repeated. Return: whether it was one, and there is such a page.
 */
bool sl_null_as_bpf(void *context, void *first_page);

#endif
