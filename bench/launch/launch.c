// launch runs a program and writes what it cost to file handle 3: user and
// system time in microseconds, peak resident memory in KiB, exit status.
//
// It stands between the benchmark and each program because of the peak: Linux
// counts the memory of the process that exec replaces as the program's own
// (fs/exec.c, exec_mmap), and that would be the benchmark's, which is larger than
// what it measures. A child of launch begins with launch's own, 1 to 2 MB.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long long micros(struct timeval t) { return t.tv_sec * 1000000LL + t.tv_usec; }

int main(int argc, char **argv)
{
	if (argc < 2 || fcntl(3, F_SETFD, FD_CLOEXEC)) {
		fputs("usage: launch PROGRAM [ARGUMENT...] 3>REPORT\n", stderr);
		return 1;
	}
	pid_t pid = vfork();
	if (pid == 0) {
		execv(argv[1], argv + 1);
		_exit(127);
	}
	int status;
	struct rusage u;
	if (pid < 0 || wait4(pid, &status, 0, &u) < 0) {
		perror("launch");
		return 1;
	}
	dprintf(3, "%lld %lld %ld %d\n", micros(u.ru_utime), micros(u.ru_stime), u.ru_maxrss,
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}
