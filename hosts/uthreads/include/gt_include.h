/* SPDX-License-Identifier: MIT */
/* gt_include.h - what a client of GTThreads includes. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <schedlab/gt.h>
