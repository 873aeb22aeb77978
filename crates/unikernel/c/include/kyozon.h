/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions of a unikernel in C, besides those of <pthread.h> and the compiler's own headers. There is no C library. */
#ifndef KYOZON_H
#define KYOZON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a static of which each thread has its own copy, with the same initial value. __thread works too. */
#define KYOZON_PRIVATE __attribute__((section(".private")))

/* Prints a string, unchanged. */
void kyozon_print(const char *text);
/* A monotonic clock, in nanoseconds. */
uint64_t kyozon_now(void);
/* Ends the calling thread; in the first thread, all threads. */
void kyozon_exit(int status) __attribute__((noreturn));

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *piece, size_t bytes);
void free(void *piece);
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
