// SPDX-License-Identifier: MIT OR Apache-2.0
/* Runs a program that wasm2c made of WebAssembly, with as much of WASI as the programs of this folder call. */
#include "program.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INVALID		28
#define NO_SEEK		70
#define TERMINAL	2

typedef struct Z_wasi_snapshot_preview1_instance_t {
	Z_program_instance_t *program;
	int argc;
	char **argv;
} wasi;

static wasi host;

/* Where the program's bytes lie. */
static void *at(u32 pointer, u64 size)
{
	wasm_rt_memory_t *memory = Z_programZ_memory(host.program);

	if (pointer + size > memory->size)
		abort();
	return memory->data + pointer;
}

static void put(u32 pointer, u32 value)
{
	memcpy(at(pointer, 4), &value, 4);
}

static u32 get(u32 pointer)
{
	u32 value;

	memcpy(&value, at(pointer, 4), 4);
	return value;
}

u32 Z_wasi_snapshot_preview1Z_args_sizes_get(wasi *w, u32 count, u32 size)
{
	u32 bytes = 0;

	for (int n = 0; n < host.argc; n++)
		bytes += strlen(host.argv[n]) + 1;
	put(count, host.argc);
	put(size, bytes);
	return 0;
}

u32 Z_wasi_snapshot_preview1Z_args_get(wasi *w, u32 pointers, u32 bytes)
{
	for (int n = 0; n < host.argc; n++) {
		u32 size = strlen(host.argv[n]) + 1;

		put(pointers + 4 * n, bytes);
		memcpy(at(bytes, size), host.argv[n], size);
		bytes += size;
	}
	return 0;
}

u32 Z_wasi_snapshot_preview1Z_environ_sizes_get(wasi *w, u32 count, u32 size)
{
	put(count, 0);
	put(size, 0);
	return 0;
}

u32 Z_wasi_snapshot_preview1Z_environ_get(wasi *w, u32 pointers, u32 bytes)
{
	return 0;
}

/* WASI's numbers of clocks are Linux's. */
u32 Z_wasi_snapshot_preview1Z_clock_time_get(wasi *w, u32 clock, u64 precision, u32 result)
{
	struct timespec time;
	u64 ns;

	if (clock_gettime(clock, &time))
		return INVALID;
	ns = time.tv_sec * 1000000000ull + time.tv_nsec;
	memcpy(at(result, sizeof(ns)), &ns, sizeof(ns));
	return 0;
}

u32 Z_wasi_snapshot_preview1Z_fd_fdstat_get(wasi *w, u32 fd, u32 result)
{
	u8 *stat = memset(at(result, 24), 0, 24);

	stat[0] = TERMINAL;
	return 0;
}

u32 Z_wasi_snapshot_preview1Z_fd_seek(wasi *w, u32 fd, u64 offset, u32 whence, u32 result)
{
	return NO_SEEK;
}

u32 Z_wasi_snapshot_preview1Z_fd_write(wasi *w, u32 fd, u32 ranges, u32 count, u32 result)
{
	u32 total = 0;

	for (u32 n = 0; n < count; n++) {
		u32 size = get(ranges + 8 * n + 4);
		ssize_t written = write(fd, at(get(ranges + 8 * n), size), size);

		if (written < 0)
			return INVALID;
		total += written;
	}
	put(result, total);
	return 0;
}

void Z_wasi_snapshot_preview1Z_proc_exit(wasi *w, u32 status)
{
	exit(status);
}

int main(int argc, char **argv)
{
	static Z_program_instance_t program;

	host = (wasi){ &program, argc, argv };
	wasm_rt_init();
	Z_program_init_module();
	Z_program_instantiate(&program, &host);
	Z_programZ__start(&program);
	return 0;
}
