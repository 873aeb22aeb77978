// map: maps the event ring in one thread while a load in another waits for the page of its first image. The page
// comes when the mapping has had a second to get hold of the address space.
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../crates/base/abi/include/kyozon/abi.h"

#define PAGE 4096ul

static int device;
static struct kyozon_load request;

static void *load(void *unused)
{
	return (void *)(ioctl(device, KYOZON_IOCTL_LOAD, &request) ? (long)errno : 0l);
}

static void *map(void *unused)
{
	void *ring = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, device, 0);

	return (void *)(ring == MAP_FAILED ? (long)errno : 0l);
}

static void check(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_zeropage zero = { .range.len = PAGE };
	struct uffd_msg fault;
	pthread_t loading, mapping;
	void *loaded, *mapped, *image;
	int faults;

	device = open("/dev/kyozon", O_RDWR);
	check(device >= 0, "/dev/kyozon");
	faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	check(faults >= 0 && !ioctl(faults, UFFDIO_API, &api), "userfaultfd");
	image = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(image != MAP_FAILED, "mmap");
	zero.range.start = area.range.start = (unsigned long)image;
	area.range.len = PAGE;
	check(!ioctl(faults, UFFDIO_REGISTER, &area), "UFFDIO_REGISTER");
	request = (struct kyozon_load){
		.version = KYOZON_DEVICE_VERSION,
		.mode = KYOZON_MODE_NONE,
		.tick_hz = 100, .budget_us = 1000, .memory_bytes = 1 << 20, .image_count = 2,
		.images = { { (unsigned long)image, PAGE }, { (unsigned long)image, PAGE } },
	};
	check(!pthread_create(&loading, NULL, load, NULL), "thread");
	check(read(faults, &fault, sizeof(fault)) == sizeof(fault), "the load's fault");
	check(!pthread_create(&mapping, NULL, map, NULL), "thread");
	sleep(1);
	check(!ioctl(faults, UFFDIO_ZEROPAGE, &zero), "UFFDIO_ZEROPAGE");
	pthread_join(loading, &loaded);
	pthread_join(mapping, &mapped);
	printf("load: %s (%s)\n", strerror((long)loaded), request.message);
	printf("map: %s\n", strerror((long)mapped));
}
