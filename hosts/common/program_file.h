/* SPDX-License-Identifier: MIT */
/*
 * program_file.h - a workload program as a file; what it means is in player/.
 *
 * Read next: player/program.h.
 */
#ifndef COMMON_PROGRAM_FILE_H
#define COMMON_PROGRAM_FILE_H

#include <scx/types.h>

/**
 * sl_program_file_map - have a program in memory, and checked
 * @path: file that Python's program/compiler.py wrote
 * @why: what is wrong, with the path
 * @why_bytes: size of @why
 *
 * Return: the program, for as long as the process lives; NULL with @why filled in.
 */
const void *sl_program_file_map(const char *path, char *why, u32 why_bytes);

#endif
