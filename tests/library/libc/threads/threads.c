/* Threads: creation, joining, locks of each kind, thread-local data, detached and robust ones. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include "check.h"

#define THREADS 8
#define ROUNDS 5000
#define MANY 63

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_key_t key;
static sem_t semaphore;
static __thread long local = 5;
static __thread char zeroes[5000];
static long counter, written, turn, initialized, destroyed, last_in_barrier, inside;

static void initialize(void)
{
	initialized++;
}

static void destroy(void *value)
{
	__atomic_add_fetch(&destroyed, (long)value, __ATOMIC_SEQ_CST);
}

static void *work(void *argument)
{
	long number = (long)argument;
	CHECK(local == 5 && !zeroes[0] && !zeroes[4999]);
	local += number;
	memset(zeroes, 1, sizeof zeroes);
	CHECK(!pthread_once(&once, initialize) && !pthread_setspecific(key, (void *)(number + 1)));

	for (int i = 0; i < ROUNDS; i++) {
		CHECK(!pthread_mutex_lock(&mutex));
		counter++;
		CHECK(!pthread_mutex_unlock(&mutex));
	}

	/* Nobody passes the barrier before all have counted. */
	int result = pthread_barrier_wait(&barrier);
	CHECK(!result || result == PTHREAD_BARRIER_SERIAL_THREAD);
	if (result) __atomic_add_fetch(&last_in_barrier, 1, __ATOMIC_SEQ_CST);
	CHECK(counter == THREADS * ROUNDS);

	/* One after the other, in the order of their numbers. */
	for (int i = 0; i < 50; i++) {
		pthread_mutex_lock(&mutex);
		while (turn % THREADS != number) CHECK(!pthread_cond_wait(&changed, &mutex));
		turn++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&mutex);
	}

	/* Readers see both halves of each write. */
	static long twin[2];
	for (int i = 0; i < 500; i++) {
		CHECK(!pthread_rwlock_rdlock(&rwlock));
		CHECK(twin[0] == twin[1]);
		pthread_rwlock_unlock(&rwlock);
		if (i % 50) continue;
		CHECK(!pthread_rwlock_wrlock(&rwlock));
		twin[0]++;
		written++;
		twin[1]++;
		pthread_rwlock_unlock(&rwlock);
	}

	/* The semaphore admits two. */
	CHECK(!sem_wait(&semaphore));
	CHECK(__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) <= 2);
	free(memset(malloc(100000), 1, 100000));
	__atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	CHECK(!sem_post(&semaphore));
	return (void *)local;
}

static void all_together(void)
{
	pthread_t threads[THREADS];
	long sum = 0;
	CHECK(!pthread_barrier_init(&barrier, NULL, THREADS) && !sem_init(&semaphore, 0, 2));
	CHECK(!pthread_key_create(&key, destroy));
	for (long i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, work, (void *)i));
	for (int i = 0; i < THREADS; i++) {
		void *result;
		CHECK(!pthread_join(threads[i], &result));
		sum += (long)result;
	}
	CHECK(sum == 5 * THREADS + THREADS * (THREADS - 1) / 2 && local == 5 && !zeroes[0]);
	CHECK(initialized == 1 && destroyed == THREADS * (THREADS + 1) / 2 && last_in_barrier == 1);
	CHECK(turn == 50 * THREADS && written == 10 * THREADS);
}

static void time_limits(void)
{
	struct timespec limit;
	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_nsec += 5000000;
	if (limit.tv_nsec >= 1000000000) {
		limit.tv_nsec -= 1000000000;
		limit.tv_sec++;
	}
	pthread_mutex_lock(&mutex);
	CHECK(pthread_cond_timedwait(&changed, &mutex, &limit) == ETIMEDOUT);
	CHECK(pthread_mutex_timedlock(&mutex, &limit) == ETIMEDOUT && pthread_mutex_trylock(&mutex) == EBUSY);
	pthread_mutex_unlock(&mutex);
	CHECK(!sem_init(&semaphore, 0, 0) && sem_timedwait(&semaphore, &limit) == -1 && errno == ETIMEDOUT);
}

static pthread_mutex_t robust;

static void *lock_and_end(void *argument)
{
	CHECK(!pthread_mutex_lock(&robust));
	return argument;
}

static void robust_mutex(void)
{
	pthread_mutexattr_t attributes;
	pthread_t thread;
	pthread_mutexattr_init(&attributes);
	CHECK(!pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST));
	CHECK(!pthread_mutex_init(&robust, &attributes));
	CHECK(!pthread_create(&thread, NULL, lock_and_end, NULL) && !pthread_join(thread, NULL));
	CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD && !pthread_mutex_consistent(&robust));
	CHECK(!pthread_mutex_unlock(&robust) && !pthread_mutex_lock(&robust));
}

static void *post(void *argument)
{
	CHECK(!sem_post(argument));
	return NULL;
}

/* MiB of address space in use; 0 on a host without /proc, which has no room for a leak. */
static long mapped(void)
{
	long pages;
	FILE *file = fopen("/proc/self/statm", "r");
	if (!file) return 0;
	CHECK(fscanf(file, "%ld", &pages) == 1 && !fclose(file));
	return pages / 256;
}

/* Detached threads unmap their own stacks: otherwise 4000 MiB would stay. */
static void detached(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	long before = mapped();
	CHECK(!pthread_attr_init(&attributes) && !pthread_attr_setstacksize(&attributes, 4 << 20));
	CHECK(!pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) && !sem_init(&semaphore, 0, 0));
	for (int i = 0; i < 1000; i++) {
		CHECK(!pthread_create(&thread, &attributes, post, &semaphore) && !sem_wait(&semaphore));
	}
	/* The last ones may not have done so yet. */
	for (int i = 0; i < 1000 && mapped() > before + 1024; i++) nanosleep(&(struct timespec){0, 1000000}, NULL);
	CHECK(mapped() <= before + 1024);
}

static void *wait_for_post(void *argument)
{
	pthread_barrier_wait(&barrier);
	CHECK(!sem_wait(&semaphore));
	return argument;
}

static void many_at_once(void)
{
	pthread_t threads[MANY];
	CHECK(!pthread_barrier_init(&barrier, NULL, MANY + 1) && !sem_init(&semaphore, 0, 0));
	for (long i = 0; i < MANY; i++) CHECK(!pthread_create(&threads[i], NULL, wait_for_post, (void *)i));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < MANY; i++) sem_post(&semaphore);
	for (long i = 0; i < MANY; i++) {
		void *result;
		CHECK(!pthread_join(threads[i], &result) && (long)result == i);
	}
	printf("%d at once\n", MANY);
}

/* A thread on memory of the program, as small as POSIX permits. */
static void own_stack(void)
{
	static char stack[PTHREAD_STACK_MIN] __attribute__((aligned(4096)));
	pthread_attr_t attributes;
	pthread_t thread;
	CHECK(!pthread_attr_init(&attributes) && !pthread_attr_setstack(&attributes, stack, sizeof stack));
	CHECK(!sem_init(&semaphore, 0, 0) && !pthread_create(&thread, &attributes, post, &semaphore));
	CHECK(!sem_wait(&semaphore) && !pthread_join(thread, NULL));
}

int main(void)
{
	all_together();
	time_limits();
	robust_mutex();
	own_stack();
	many_at_once();
	detached();
	return 0;
}
