// unplug: loads the test cokernel in mode vmm. After the module's first look at the CPUs, while it waits for the
// operator's data, CPU 1 goes offline.
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../crates/base/abi/include/kyozon/abi.h"

#define PAGE 4096ul

static struct kyozon_load request;

static void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static struct kyozon_image image(const char *path)
{
	int file = open(path, O_RDONLY);
	struct stat size;
	void *bytes;

	check(file >= 0 && !fstat(file, &size), path);
	bytes = mmap(NULL, size.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
	check(bytes != MAP_FAILED, path);
	return (struct kyozon_image){ (unsigned long)bytes, size.st_size };
}

static void *load(void *unused)
{
	int device = open("/dev/kyozon", O_RDWR);

	check(device >= 0, "/dev/kyozon");
	return (void *)(ioctl(device, KYOZON_IOCTL_LOAD, &request) ? (long)errno : 0l);
}

static void set_online(const char *value)
{
	int file = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY);

	check(file >= 0 && write(file, value, 1) == 1, "cpu1/online");
	close(file);
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_zeropage zero = { .range.len = PAGE };
	struct uffd_msg fault;
	pthread_t loading;
	void *loaded, *data;
	int faults;

	faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	check(faults >= 0 && !ioctl(faults, UFFDIO_API, &api), "userfaultfd");
	data = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(data != MAP_FAILED, "mmap");
	zero.range.start = area.range.start = (unsigned long)data;
	area.range.len = PAGE;
	check(!ioctl(faults, UFFDIO_REGISTER, &area), "UFFDIO_REGISTER");
	request = (struct kyozon_load){
		.version = KYOZON_DEVICE_VERSION, .mode = KYOZON_MODE_VMM,
		.tick_hz = 100, .budget_us = 10000, .memory_bytes = 1 << 20, .image_count = 2,
		.images = { image("/usr/lib/kyozon/layer.bin"), image("/usr/lib/kyozon/cokernel-test.bin") },
		.hypervisor = image("/usr/lib/kyozon/svm.bin"),
		.data = { (unsigned long)data, PAGE },
	};
	check(!pthread_create(&loading, NULL, load, NULL), "thread");
	check(read(faults, &fault, sizeof(fault)) == sizeof(fault), "the load's fault");
	set_online("0");
	check(!ioctl(faults, UFFDIO_ZEROPAGE, &zero), "UFFDIO_ZEROPAGE");
	pthread_join(loading, &loaded);
	set_online("1");
	printf("load: %s (%s)\n", strerror((long)loaded), request.message);
	return 0;
}
