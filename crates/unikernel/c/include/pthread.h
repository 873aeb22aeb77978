/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * POSIX threads of a unikernel. Each thread is a virtual machine of its own; all share memory. Zero bytes initialize a
 * lock. Differences from POSIX: mutexes are robust and not recursive; pthread_mutex_lock returns EOWNERDEAD if the last
 * owner died, and pthread_join if the thread died; pthread_exit in the first thread ends all threads.
 */
#ifndef KYOZON_PTHREAD_H
#define KYOZON_PTHREAD_H

#include <stddef.h>
#include <stdint.h>

#ifndef EPERM
#define EPERM 1
#define ESRCH 3
#define EAGAIN 11
#define EBUSY 16
#define EINVAL 22
#define EDEADLK 35
#define ETIMEDOUT 110
#define EOWNERDEAD 130
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kyozon_pthread *pthread_t;
typedef struct { size_t stack; int detached; } pthread_attr_t;
typedef struct { uint64_t words[3]; } pthread_mutex_t;
typedef struct { uint64_t words[1]; } pthread_cond_t;
typedef struct { uint64_t words[6]; } pthread_barrier_t;
typedef struct { int none; } pthread_mutexattr_t;
typedef struct { int none; } pthread_condattr_t;
typedef struct { int none; } pthread_barrierattr_t;
struct timespec { int64_t tv_sec; int64_t tv_nsec; };

#define PTHREAD_MUTEX_INITIALIZER { { 0, 0, 0 } }
#define PTHREAD_COND_INITIALIZER { { 0 } }
#define PTHREAD_BARRIER_SERIAL_THREAD (-1)
#define PTHREAD_CREATE_JOINABLE 0
#define PTHREAD_CREATE_DETACHED 1

int pthread_attr_init(pthread_attr_t *attr);
int pthread_attr_setstacksize(pthread_attr_t *attr, size_t bytes);
int pthread_attr_setdetachstate(pthread_attr_t *attr, int detached);
int pthread_attr_destroy(pthread_attr_t *attr);

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument);
int pthread_join(pthread_t thread, void **value);
int pthread_detach(pthread_t thread);
void pthread_exit(void *value) __attribute__((noreturn));
pthread_t pthread_self(void);
int pthread_equal(pthread_t one, pthread_t other);

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_trylock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);
int pthread_mutex_consistent(pthread_mutex_t *mutex);
int pthread_mutex_destroy(pthread_mutex_t *mutex);

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until);
int pthread_cond_signal(pthread_cond_t *cond);
int pthread_cond_broadcast(pthread_cond_t *cond);
int pthread_cond_destroy(pthread_cond_t *cond);

int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attr, unsigned count);
int pthread_barrier_wait(pthread_barrier_t *barrier);
int pthread_barrier_destroy(pthread_barrier_t *barrier);

#ifdef __cplusplus
}
#endif
#endif
