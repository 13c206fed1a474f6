// life looks at the state of every port of the tree it is given, once a second,
// until it is killed, or as often as the second argument says, without a pause:
// the floor that an idle agent is measured against. It reads nothing else, and
// concludes nothing.
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char pattern[4096], buf[4096];
	glob_t ports;
	if (argc != 2 && argc != 3)
		return 2;
	long looks = argc == 3 ? atol(argv[2]) : 0;
	snprintf(pattern, sizeof pattern, "%s/sys/class/infiniband/*/ports/*/state", argv[1]);
	if (glob(pattern, 0, NULL, &ports) != 0)
		return 1;
	for (struct timespec second = {1, 0};;) {
		for (size_t i = 0; i < ports.gl_pathc; i++) {
			int fd = open(ports.gl_pathv[i], O_RDONLY | O_CLOEXEC);
			if (fd < 0 || read(fd, buf, sizeof buf) <= 0)
				return 1;
			close(fd);
		}
		if (looks == 0) {
			nanosleep(&second, NULL);
		} else if (--looks == 0) {
			printf("ports=%zu\n", ports.gl_pathc);
			return 0;
		}
	}
}
