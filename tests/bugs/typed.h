/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For programs that load and run a typed program by /dev/kyozon-typed themselves. */
#ifndef BUGS_TYPED_H
#define BUGS_TYPED_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../crates/base/abi/include/kyozon/abi.h"

static inline int typed_device(void)
{
	int device = open("/dev/kyozon-typed", O_RDWR);

	if (device >= 0)
		return device;
	perror("/dev/kyozon-typed");
	exit(2);
}

/*
 * Loads a program whose import 0 means this function, or, if that is 0, whose imports have their own numbers. Returns
 * why it is refused, or NULL.
 */
static inline const char *typed_load(int device, const char *path, uint32_t import)
{
	static uint8_t file[1 << 16];
	static struct kyozon_typed_load load;
	int program = open(path, O_RDONLY);
	ssize_t bytes = read(program, file, sizeof(file));

	if (bytes <= 0) {
		perror(path);
		exit(2);
	}
	close(program);
	load.check.version = KYOZON_TYPED_VERSION;
	load.check.file.address = (uintptr_t)file;
	load.check.file.bytes = bytes;
	load.imports = import ? (uintptr_t)&import : 0;
	load.import_count = import ? 1 : 0;
	return ioctl(device, KYOZON_IOCTL_TYPED_LOAD, &load) ? (const char *)load.check.message : NULL;
}

/* A request without files and memory. */
static inline struct kyozon_typed_run typed_run(void)
{
	struct kyozon_typed_run run = { .version = KYOZON_TYPED_VERSION };

	memset(run.handles, -1, sizeof(run.handles));
	return run;
}

/* Filters the packets of interface 1, which is lo in each namespace. */
static inline void typed_filter(int device)
{
	struct kyozon_typed_filter filter = { .version = KYOZON_TYPED_VERSION, .interface = 1 };

	if (!ioctl(device, KYOZON_IOCTL_TYPED_FILTER, &filter))
		return;
	fprintf(stderr, "filter: %s\n", (const char *)filter.message);
	exit(2);
}

/*
 * A request of a program of WASI, in whose memory a buffer of 16 bytes is named at 0. This may be done with its
 * descriptor 0, which is for this file.
 */
static inline struct kyozon_typed_run wasi_run(int file, uint32_t operation)
{
	struct kyozon_typed_run run = typed_run();
	uint32_t *memory = mmap((void *)(uintptr_t)KYOZON_TYPED_REGION, 4096, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (memory == MAP_FAILED) {
		perror("the region");
		exit(2);
	}
	memory[0] = 64;
	memory[1] = 16;
	run.handles[0] = file;
	run.operations[0] = operation;
	run.memory = KYOZON_TYPED_REGION;
	run.memory_bytes = 4096;
	return run;
}

#endif
