/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a unikernel in C has from its machine, beside <pthread.h>. The compiler's own headers are all else there is. */
#ifndef KYOZON_H
#define KYOZON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A static of which each thread has its own, which begins as it is written; __thread works, too. */
#define KYOZON_PRIVATE __attribute__((section(".private")))

/* Prints a string, as it is. */
void kyozon_print(const char *text);
/* Nanoseconds of a clock that never goes back. */
uint64_t kyozon_now(void);
/* Ends the calling thread; where that is the first, all. */
void kyozon_exit(int status) __attribute__((noreturn));

void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *at, size_t bytes);
void free(void *at);
void *memcpy(void *to, const void *from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
