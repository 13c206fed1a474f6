// bare reads what a discovery of GPUDirect RDMA cannot do without, from the tree
// it is given, and concludes nothing from it: the floor that gdr-features is
// measured against; with "check" behind the tree, what the advice of check rests
// on too. Each file is opened, read and closed once, by the shortest
// name there is.
//
// Left out is what gdr-features reads beyond that, to be right on more machines
// (as strace shows it):
//   - configuration space of the bridges between GPUs and NICs, for ACS
//   - numa_node of the topmost switch above a GPU or NIC, where NCCL hangs it
//   - vpd of InfiniBand NICs and board_id of their RDMA devices, to leave the
//     management port of NVLink switches alone
//   - the machine's DMI names and /sys/hypervisor, for hypervisors that hide
//   - a virtual machine's NCCL topology file
//   - whether mlx5_core is there at all, and whether /sys/module can be read
//   - ib_core's namespace mode, where a NIC has no RDMA device
// It also does not confine its names to the tree (openat2) and does not read on
// until a file's end.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char buf[64 << 10];
static int advice; // read for check

// slurp opens, reads and closes a file: one read, as sysfs needs.
static ssize_t slurp(int dir, const char *name, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, buf, size - 1);
	close(fd);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

// target reads a link into buf.
static ssize_t target(int dir, const char *name)
{
	ssize_t n = readlinkat(dir, name, buf, sizeof buf - 1);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

static DIR *directory(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? NULL : fdopendir(fd);
}

// next gives the name of the next entry, NULL at the end.
static const char *next(DIR *d)
{
	struct dirent *e;
	while ((e = readdir(d)) && e->d_name[0] == '.')
		;
	return e ? e->d_name : NULL;
}

// links reads the links of a GPU or a NIC and of the bridges above it, each once; a
// path has them. Of the port right above only what the link can do is read.
static void links(int devices, char *path)
{
	static const char *const files[] = {
		"max_link_speed", "max_link_width", "current_link_speed", "current_link_width",
	};
	static char done[4096][16];
	static int count;
	const char *parts[32];
	int n = 0;
	for (char *part = strtok(path, "/"); part && n < 32; part = strtok(NULL, "/"))
		if (strlen(part) == 12 && part[4] == ':')
			parts[n++] = part;
	for (int at = 0; at < n; at++) {
		int known = count == 4096;
		for (int i = 0; i < count && !known; i++)
			known = !strcmp(done[i], parts[at]);
		if (known)
			continue;
		strcpy(done[count++], parts[at]);
		for (int i = 0; i < (at == n - 2 ? 2 : 4); i++) {
			char name[64];
			snprintf(name, sizeof name, "%s/%s", parts[at], files[i]);
			slurp(devices, name, 64);
		}
	}
}

// attributes reads what is needed of a GPU or a NIC. A virtual function has no link.
static void attributes(int devices, const char *address, int nic, char *path)
{
	char name[512];
	int virtual = 0;
	snprintf(name, sizeof name, "%s/numa_node", address);
	slurp(devices, name, 64);
	snprintf(name, sizeof name, "%s/driver", address);
	target(devices, name);
	if (nic) {
		snprintf(name, sizeof name, "%s/physfn", address);
		virtual = target(devices, name) >= 0;
	}
	if (!virtual)
		links(devices, path);
	snprintf(name, sizeof name, "%s/iommu_group", address);
	if (target(devices, name) < 0)
		return;
	const char *group = strrchr(buf, '/');
	snprintf(name, sizeof name, "sys/kernel/iommu_groups%.200s/type", group ? group : "");
	slurp(AT_FDCWD, name, 64);
}

static void functions(void)
{
	int all = 0, gpus = 0, nics = 0;
	DIR *devices = directory(AT_FDCWD, "sys/bus/pci/devices");
	if (!devices) {
		perror("bare: sys/bus/pci/devices");
		exit(1);
	}
	for (const char *address; (address = next(devices)); all++) {
		char name[512], path[1024];
		snprintf(path, sizeof path, "%.1023s", target(dirfd(devices), address) < 0 ? address : buf);
		snprintf(name, sizeof name, "%s/modalias", address);
		if (slurp(dirfd(devices), name, 128) < 0)
			continue;
		// pci:v000010DEd00002330sv...sd...bc03sc02i00
		const char *class = strstr(buf, "bc");
		if (!class)
			continue;
		int gpu = !strncmp(buf, "pci:v000010DE", 13) && !strncmp(class, "bc03", 4);
		int nic = !strncmp(buf, "pci:v000015B3", 13) && !strncmp(class, "bc02", 4);
		gpus += gpu;
		nics += nic;
		if (gpu || nic)
			attributes(dirfd(devices), address, nic, path);
	}
	closedir(devices);
	printf("functions=%d gpus=%d nics=%d", all, gpus, nics);
}

static void rdma(void)
{
	int all = 0, count = 0;
	DIR *class = directory(AT_FDCWD, "sys/class/infiniband");
	if (class) {
		for (const char *device; (device = next(class)); all++) {
			char name[1024];
			target(dirfd(class), device);
			snprintf(name, sizeof name, "%s/ports", device);
			DIR *ports = directory(dirfd(class), name);
			if (!ports)
				continue;
			for (const char *port; (port = next(ports)); count++) {
				snprintf(name, sizeof name, "%s/state", port);
				slurp(dirfd(ports), name, 64);
				snprintf(name, sizeof name, "%s/link_layer", port);
				slurp(dirfd(ports), name, 64);
				snprintf(name, sizeof name, "%s/rate", port);
				slurp(dirfd(ports), name, 64);
			}
			closedir(ports);
		}
		closedir(class);
	}
	printf(" rdma=%d ports=%d", all, count);
}

static void drivers(void)
{
	slurp(AT_FDCWD, "sys/module/nvidia_peermem/initstate", 64);
	slurp(AT_FDCWD, "sys/module/nv_peer_mem/initstate", 64);
	slurp(AT_FDCWD, "sys/module/nvidia_fs/initstate", 64);
	access("sys/module/mlx_compat", F_OK);
	slurp(AT_FDCWD, "sys/module/mlx5_core/version", 64);
	slurp(AT_FDCWD, "proc/driver/nvidia/version", 4096);
	slurp(AT_FDCWD, "proc/cpuinfo", 16 << 10);
}

static void symbols(void)
{
	long long size = 0;
	int fd = openat(AT_FDCWD, "proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0; size += n)
			;
		close(fd);
	}
	printf(" kallsyms=%lld\n", size);
}

// settings reads what advice rests on besides, most of which is not there.
static void settings(void)
{
	static const char *const files[] = {
		"sys/module/nvidia_peermem/version", "sys/module/nvidia_peermem/refcnt",
		"sys/module/nvidia_peermem/parameters/peerdirect_support",
		"sys/module/nvidia_peermem/parameters/persistent_api_support",
		"sys/kernel/mm/memory_peers/nv_mem/version", "sys/kernel/mm/memory_peers/nv_mem_nc/version",
		"proc/sys/kernel/numa_balancing", "proc/cmdline", "proc/device-tree/compatible",
		"proc/driver/nvidia/params", "run/nvidia/validations", "run/mellanox/drivers/.driver-ready",
	};
	static const char *const held[] = {"sys/module/ib_core/holders", "sys/module/ib_uverbs/holders"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		slurp(AT_FDCWD, files[i], 4096);
	for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
		DIR *holders = directory(AT_FDCWD, held[i]);
		if (!holders)
			continue;
		while (next(holders))
			;
		closedir(holders);
	}
}

int main(int argc, char **argv)
{
	advice = argc == 3 && !strcmp(argv[2], "check");
	if (argc != 2 + advice || chdir(argv[1])) {
		perror("bare: usage: bare TREE [check]");
		return 1;
	}
	functions();
	rdma();
	DIR *nodes = directory(AT_FDCWD, "sys/devices/system/node");
	if (nodes) {
		while (next(nodes))
			;
		closedir(nodes);
	}
	drivers();
	if (advice)
		settings();
	symbols();
	return 0;
}
