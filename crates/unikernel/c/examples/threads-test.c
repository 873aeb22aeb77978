/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Creates threads that end in every way that is no crash, and prints how much less room the heap has afterwards.
 * Argument: how many threads; or `objects`, which checks when locks may be destroyed, and what a late waiter holds.
 */
#include <kyozon.h>
#include <pthread.h>

enum { BLOCK = 4000, WAYS = 6, WARM = 12 };

struct block {
	struct block *next;
};

static int failed;

static void check(int holds, const char *what)
{
	if (!holds) {
		kyozon_print(what);
		kyozon_print("\n");
		failed = 1;
	}
}

static unsigned parse(const char *text)
{
	unsigned number = 0;
	while (*text >= '0' && *text <= '9')
		number = number * 10 + (unsigned)(*text++ - '0');
	return number;
}

static void print_number(unsigned number)
{
	char text[12], *at = text + sizeof text - 1;
	*at = 0;
	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) != 0);
	kyozon_print(at);
}

/* Blocks that the heap has room for. */
static unsigned room(void)
{
	struct block *all = NULL, *block;
	unsigned count = 0;
	while ((block = malloc(BLOCK)) != NULL) {
		block->next = all;
		all = block;
		count++;
	}
	while ((block = all) != NULL) {
		all = block->next;
		free(block);
	}
	return count;
}

static unsigned ended;

static void *returns(void *argument)
{
	__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
	return argument;
}

static void *exits(void *argument)
{
	free(malloc(100));
	pthread_exit(returns(argument));
}

static void *detaches_itself(void *argument)
{
	check(pthread_detach(pthread_self()) == 0, "a thread cannot detach itself");
	return exits(argument);
}

/* Creates a thread that ends in one of the ways. */
static void run(unsigned way)
{
	pthread_attr_t detached;
	pthread_t thread;
	void *value = NULL;
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	void *(*const work[WAYS])(void *) = { returns, exits, returns, exits, returns, detaches_itself };
	int with = way == 2 || way == 3;
	if (pthread_create(&thread, with ? &detached : NULL, work[way], &value) != 0) {
		check(0, "no thread");
		return;
	}
	if (way < 2)
		check(pthread_join(thread, &value) == 0 && value == &value, "a thread has another value");
	else if (way == 4)
		check(pthread_detach(thread) == 0, "a thread cannot be detached");
}

static void run_all(unsigned count)
{
	static unsigned made;
	for (unsigned i = 0; i < count; i++)
		run(i % WAYS);
	made += count;
	while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) != made)
		;
	/* Threads are gone some time after their last instruction. The next one to be created frees their stacks. */
	uint64_t end = kyozon_now() + 300000000;
	while (kyozon_now() < end)
		;
	made++;
	run(0);
}

enum { PARTIES = 4, ROUNDS = 300, BYTES = 64 };

/* Objects whose memory their last user overwrites; no thread may touch them after that. */
static struct object {
	_Alignas(64) unsigned char bytes[BYTES];
} mutexes[ROUNDS], conds[ROUNDS], barriers[ROUNDS];
static unsigned users[ROUNDS], waiting[ROUNDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void overwrite(struct object *object)
{
	for (unsigned i = 0; i < BYTES; i++)
		((volatile unsigned char *)object->bytes)[i] = 0xff;
}

static int is_intact(const struct object *object)
{
	for (unsigned i = 0; i < BYTES; i++)
		if (((const volatile unsigned char *)object->bytes)[i] != 0xff)
			return 0;
	return 1;
}

static void *destroys(void *argument)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		pthread_mutex_t *mutex = (pthread_mutex_t *)mutexes[i].bytes;
		pthread_cond_t *cond = (pthread_cond_t *)conds[i].bytes;
		pthread_barrier_t *barrier = (pthread_barrier_t *)barriers[i].bytes;
		int arrived = pthread_barrier_wait(barrier);
		check(arrived == 0 || arrived == PTHREAD_BARRIER_SERIAL_THREAD, "a barrier fails");
		if (arrived == PTHREAD_BARRIER_SERIAL_THREAD) {
			check(pthread_barrier_destroy(barrier) == 0, "a barrier cannot be destroyed");
			overwrite(&barriers[i]);
		}
		check(pthread_mutex_lock(mutex) == 0, "a mutex cannot be locked");
		int last = ++users[i] == PARTIES;
		check(pthread_mutex_unlock(mutex) == 0, "a mutex cannot be unlocked");
		if (last) {
			check(pthread_mutex_destroy(mutex) == 0, "a mutex cannot be destroyed");
			overwrite(&mutexes[i]);
		}
		pthread_mutex_lock(&lock);
		if (++waiting[i] == PARTIES) {
			pthread_cond_broadcast(cond);
			check(pthread_cond_destroy(cond) == 0, "a condition cannot be destroyed");
			overwrite(&conds[i]);
		}
		while (waiting[i] < PARTIES)
			pthread_cond_wait(cond, &lock);
		pthread_mutex_unlock(&lock);
	}
	return argument;
}

static void destroy_all(void)
{
	pthread_t threads[PARTIES];
	for (unsigned i = 0; i < ROUNDS; i++)
		pthread_barrier_init((pthread_barrier_t *)barriers[i].bytes, NULL, PARTIES);
	for (unsigned i = 0; i < PARTIES; i++)
		check(pthread_create(&threads[i], NULL, destroys, NULL) == 0, "no thread");
	for (unsigned i = 0; i < PARTIES; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < ROUNDS; i++) {
		check(is_intact(&mutexes[i]), "a mutex was touched after it was destroyed");
		check(is_intact(&conds[i]), "a condition was touched after it was destroyed");
		check(is_intact(&barriers[i]), "a barrier was touched after it was destroyed");
	}
}

static int held;

static void *crashes(void *argument)
{
	*(volatile int *)NULL = 1;
	return argument;
}

/* Holds the lock for much longer than a late waiter may wait for a sign of life. */
static void *holds(void *argument)
{
	pthread_mutex_lock(&lock);
	held = 1;
	uint64_t end = kyozon_now() + 400000000;
	while (kyozon_now() < end)
		;
	held = 0;
	pthread_mutex_unlock(&lock);
	return argument;
}

/* A waiter whose deadline has passed holds the mutex, even if it was taken, and a thread has died before. */
static void wait_late(void)
{
	static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec past = { 0, 0 };
	pthread_t thread;
	check(pthread_create(&thread, NULL, crashes, NULL) == 0, "no thread");
	check(pthread_join(thread, NULL) == EOWNERDEAD, "a crash is no death");
	pthread_mutex_lock(&lock);
	check(pthread_create(&thread, NULL, holds, NULL) == 0, "no thread");
	/* The other thread gets the mutex in one of the waits. */
	uint64_t end = kyozon_now() + 300000000;
	int result = ETIMEDOUT;
	while (result == ETIMEDOUT && kyozon_now() < end)
		result = pthread_cond_timedwait(&never, &lock, &past);
	check(result == ETIMEDOUT, "a late waiter has another result");
	check(!held, "a late waiter does not hold the mutex");
	check(pthread_mutex_unlock(&lock) == 0, "a late waiter cannot unlock the mutex");
	pthread_join(thread, NULL);
}

int main(int count, char **arguments)
{
	if (count > 1 && arguments[1][0] == 'o') {
		destroy_all();
		wait_late();
		kyozon_print(failed ? "objects: failed\n" : "objects: done\n");
		return failed;
	}
	unsigned threads = count > 1 ? parse(arguments[1]) : 60;
	run_all(WARM);
	unsigned before = room();
	run_all(threads);
	unsigned after = room();
	print_number(threads);
	kyozon_print(" threads, ");
	print_number(after > before ? 0 : (before - after) * BLOCK);
	kyozon_print(" bytes lost\n");
	return failed;
}
