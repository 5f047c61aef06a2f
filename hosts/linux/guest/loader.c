/* SPDX-License-Identifier: MIT */
/*
 * loader.c - a scheduler's own program, which loads it and does what its user half does.
 *
 *	start -> the kernel says "enabled" -> the workload is played -> SIGINT -> it has ended
 *	   \-> it ended before, or had not enabled anything in time: refused
 *
 * The program and its files come with the job; it finds what is mounted on any machine, is root, and
 * an ordinary process: under the scheduler that it loads, unless it says otherwise. Its children are of
 * its process group. Between it and this process is a keeper, which learns its exit status: children of
 * this process are forgotten at once, as the tasks are.
 *
 * Read next: play.c; python/schedlab/policy/loader.py, which finds the files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

#define OUTPUT_PATH "/loader-output"
#define OUTPUT_BYTES_MAX (256 * 1024) /* of its end */
#define MS 1000000ULL
/* Of the guest's time; loading the largest takes some seconds. */
#define ENABLE_MS_MAX 30000
#define END_MS_MAX 10000

/* What its keeper says; one mapping of both. */
struct keeping {
	s32 pid;
	u32 has_ended;
	s32 status; /* as waitpid() has it */
};

static struct {
	char **argv;
	char **env;
	const char *folder;
	struct keeping *keeping;
	pid_t keeper;
	int kmsg_fd;
	char enabling[32]; /* number of the kernel's, another one for each scheduler that it has had */
} loader;

/* In this order: some are inside others. */
static const struct {
	const char *type;
	const char *place;
} mounts[] = {
	{ "proc", "/proc" },
	{ "sysfs", "/sys" },
	{ "tracefs", "/sys/kernel/tracing" },
	{ "debugfs", "/sys/kernel/debug" },
	{ "bpf", "/sys/fs/bpf" },
	{ "cgroup2", "/sys/fs/cgroup" },
	{ "devtmpfs", "/dev" },
	{ "devpts", "/dev/pts" },
	{ "tmpfs", "/dev/shm" },
};

int mount_all(const char *root)
{
	char place[64];

	for (u32 i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		snprintf(place, sizeof(place), "%s%s", root, mounts[i].place);
		mkdir(place, 0755);
		/* Busy: it is there already. */
		if (mount(mounts[i].type, place, mounts[i].type, 0, NULL) && errno != EBUSY) {
			frame_text("fatal", "mount %s at %s: %s", mounts[i].type, place,
				   strerror(errno));
			return -errno;
		}
	}
	return 0;
}

void write_config(const char *root)
{
	struct utsname name;
	char path[128];
	FILE *file;

	uname(&name);
	snprintf(path, sizeof(path), "%s/boot", root);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/boot/config-%s", root, name.release);
	file = fopen(path, "w");
	if (!file)
		return;
	fputs(kernel_config(), file);
	fclose(file);
}

int loader_open(const char *argv_path, const char *env_path)
{
	static const char *const folders[] = { "/tmp", "/run", "/var", "/var/run", "/root" };
	char **argv = read_words(argv_path);
	char folder[4096];

	loader.env = read_words(env_path);
	if (!argv || !argv[0] || !argv[1] || !loader.env) {
		frame_text("fatal", "%s: no folder and command", argv_path);
		return -1;
	}
	loader.folder = argv[0];
	loader.argv = argv + 1;
	snprintf(folder, sizeof(folder), "%s/", loader.folder);
	make_folders(folder);
	for (u32 i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		mkdir(folders[i], 01777);
	return mount_all("");
}

/* Its input stays open, and empty, as long as the keeper has the other end. */
static void be_loader(const int *input)
{
	int out = open(OUTPUT_PATH, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);

	setpgid(0, 0);
	if (dup2(input[0], STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(out, STDERR_FILENO) < 0)
		_exit(126);
	syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
	if (chdir(loader.folder)) {
		fprintf(stderr, "%s: %s\n", loader.folder, strerror(errno));
	} else {
		execve(loader.argv[0], loader.argv, loader.env);
		fprintf(stderr, "%s: %s\n", loader.argv[0], strerror(errno));
	}
	_exit(127);
}

static void be_keeper(struct keeping *keeping)
{
	int input[2];
	int status = -1;
	pid_t pid;

	/* Not above all, as the process that it comes from. */
	sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
	signal(SIGCHLD, SIG_DFL);
	pid = pipe(input) ? -1 : fork();
	if (!pid)
		be_loader(input);
	__atomic_store_n(&keeping->pid, pid, __ATOMIC_RELEASE);
	if (pid > 0)
		waitpid(pid, &status, 0);
	keeping->status = status;
	__atomic_store_n(&keeping->has_ended, 1, __ATOMIC_RELEASE);
	_exit(0);
}

/* A child that is no task: nothing that waits for those waits for it, and it is not forgotten. */
static pid_t fork_keeper(void)
{
	struct clone_args args = { .exit_signal = 0 };

	return syscall(SYS_clone3, &args, sizeof(args));
}

static bool has_ended(void)
{
	return __atomic_load_n(&loader.keeping->has_ended, __ATOMIC_ACQUIRE);
}

/* Until the condition is true, in steps of a millisecond. Return: whether it is. */
static bool wait_until(bool (*is_true)(void), u64 ms)
{
	const struct timespec step = { .tv_nsec = MS };

	while (!is_true() && ms--)
		nanosleep(&step, NULL);
	return is_true();
}

static bool has_begun_or_ended(void)
{
	return has_ended() || kernel_state_is("enabled");
}

static bool is_disabled(void)
{
	return kernel_state_is("disabled");
}

/* The end of what it printed. */
static void send_output(void)
{
	static char text[OUTPUT_BYTES_MAX];
	int fd = open(OUTPUT_PATH, O_RDONLY);
	struct stat st = { 0 };
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		return;
	n = pread(fd, text, sizeof(text),
		  st.st_size > OUTPUT_BYTES_MAX ? st.st_size - OUTPUT_BYTES_MAX : 0);
	close(fd);
	frame_bytes("output", text, n > 0 ? n : 0);
}

/* After its end, or its last chance. */
static void report(void)
{
	char text[8192];
	int status = loader.keeping->status;

	send_output();
	kernel_said(loader.kmsg_fd, text, sizeof(text));
	close(loader.kmsg_fd);
	frame_text("kernel", "%s", text);
	if (has_ended())
		frame_text("status", "%d",
			   WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
	/* One that cannot be killed stays; this machine ends soon. */
	waitpid(loader.keeper, NULL, has_ended() ? __WALL : __WALL | WNOHANG);
	munmap(loader.keeping, sizeof(*loader.keeping));
	loader.keeping = NULL;
}

/* All of it: what it has started as well. */
static void send_signal(int number)
{
	if (!has_ended() && loader.keeping->pid > 0)
		kill(-loader.keeping->pid, number);
}

static void kill_it(void)
{
	send_signal(SIGKILL);
	wait_until(has_ended, END_MS_MAX);
}

int loader_start(void)
{
	char name[128];

	loader.keeping = mmap(NULL, sizeof(*loader.keeping), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (loader.keeping == MAP_FAILED) {
		frame_text("fatal", "%s: %s", loader.argv[0], strerror(errno));
		return -1;
	}
	loader.kmsg_fd = kernel_listen();
	loader.keeper = fork_keeper();
	if (!loader.keeper)
		be_keeper(loader.keeping);
	wait_until(has_begun_or_ended, ENABLE_MS_MAX);
	if (kernel_state_is("enabled")) {
		kernel_read("root/ops", name, sizeof(name));
		kernel_read("enable_seq", loader.enabling, sizeof(loader.enabling));
		frame_text("ops", "%s", name);
		frame_text("attached", "%s", "");
		return 0;
	}
	frame_text("silent", "%d", has_ended() ? 0 : ENABLE_MS_MAX);
	kill_it();
	report();
	return -1;
}

bool loader_is_attached(void)
{
	char now[32];

	return kernel_state_is("enabled") && kernel_read("enable_seq", now, sizeof(now)) &&
	       !strcmp(now, loader.enabling);
}

void loader_end(void)
{
	bool was_alive = !has_ended();

	frame_text("ended", "%s", !loader_is_attached() ? "by the kernel" : "by us");
	send_signal(SIGINT);
	if (!wait_until(has_ended, END_MS_MAX)) {
		frame_text("silent", "%d", END_MS_MAX);
		kill_it();
	} else if (!was_alive) {
		frame_text("early", "%s", "");
	}
	wait_until(is_disabled, END_MS_MAX);
	report();
}
