/* SPDX-License-Identifier: MIT */
/*
 * machine_root.c - a command on the files of the machine outside, which virtiofs shares.
 *
 * The command, its environment and its folder come with the job, as words that each end
 * with a 0. What it prints goes out by two ports of virtio-serial, unlike frames: it is
 * a stream, and waits for its reader.
 *
 * Read next: python/schedlab/hosts/guest/live.py, the other end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

#define ROOT "/root"
/* QEMU numbers the ports of its only such device from 1. */
#define PORTS_FORMAT "/dev/vport%dp%d"
#define DEVICES_MAX 8
#define WORDS_BYTES_MAX (256 * 1024)

char **read_words(const char *path)
{
	char *text = malloc(WORDS_BYTES_MAX + 1);
	FILE *file = fopen(path, "r");
	u64 bytes = file && text ? fread(text, 1, WORDS_BYTES_MAX, file) : 0;
	char **words = calloc(bytes + 1, sizeof(*words));
	u32 nr = 0;

	if (file)
		fclose(file);
	if (!words || !bytes)
		return NULL;
	text[bytes] = '\0';
	for (char *at = text; at < text + bytes; at += strlen(at) + 1)
		words[nr++] = at;
	return words;
}

static int open_port(int number)
{
	char path[32];
	int fd = -1;

	for (int device = 0; fd < 0 && device < DEVICES_MAX; device++) {
		snprintf(path, sizeof(path), PORTS_FORMAT, device, number);
		fd = open(path, O_WRONLY | O_CLOEXEC);
	}
	return fd;
}

static void be_command(char **argv, char **env, const char *folder)
{
	int out = open_port(1), err = open_port(2);

	if (out < 0 || err < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
		_exit(126);
	if (chroot(ROOT) || chdir(folder)) {
		fprintf(stderr, "%s: %s\n", folder, strerror(errno));
		_exit(126);
	}
	setsid();
	execvpe(argv[0], argv, env);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

void machine_root_exec(const char *argv_path, const char *env_path)
{
	char **argv = read_words(argv_path), **env = read_words(env_path);
	int status = 0;
	pid_t pid;

	if (!argv || !argv[0] || !argv[1] || !env) {
		frame_text("fatal", "%s: no folder and command", argv_path);
		return;
	}
	mkdir(ROOT, 0755);
	if (mount("root", ROOT, "virtiofs", 0, NULL)) {
		frame_text("fatal", "mount virtiofs at %s: %s", ROOT, strerror(errno));
		return;
	}
	if (mount_all(ROOT))
		return;
	/* A /boot of the guest's own: the caller's belongs to another kernel. */
	if (!mount("tmpfs", ROOT "/boot", "tmpfs", 0, NULL))
		write_config(ROOT);
	frame_text("next", "%s", argv[1]);
	/* execvpe() looks along the PATH of the caller. */
	for (char **word = env; *word; word++) {
		if (!strncmp(*word, "PATH=", 5))
			putenv(*word);
	}
	signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (!pid)
		be_command(argv + 1, env, argv[0]);
	while (pid > 0 && waitpid(-1, &status, 0) != pid)
		; /* of processes that lost their parent */
	signal(SIGCHLD, SIG_IGN);
	frame_text("status", "%d", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}
