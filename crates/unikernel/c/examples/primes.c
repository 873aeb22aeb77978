/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counts the primes below a limit with POSIX threads, as a freestanding program or, compiled with -DPOSIX, for an
 * operating system. Pieces of work pass through a queue with a mutex and condition variables; a barrier separates two
 * halves; thread-local data and pthread_exit carry results. Arguments: threads, limit.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifdef POSIX
#include <stdio.h>
#define print(text) fputs(text, stdout)
#else
#include <kyozon.h>
#define print(text) kyozon_print(text)
#endif

enum { MAX_THREADS = 16, QUEUE = 4, PIECE = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, drained = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t halves;
static unsigned queue[QUEUE], queued, limit;
static int over;

/* Each thread has its own. */
static __thread unsigned found, pieces = 1;

static int is_prime(unsigned number)
{
	if (number < 2)
		return 0;
	for (unsigned by = 2; by * by <= number; by++)
		if (number % by == 0)
			return 0;
	return 1;
}

/* Takes pieces from the queue until there are no more. */
static void work(void)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (queued == 0 && !over)
			pthread_cond_wait(&filled, &lock);
		if (queued == 0) {
			pthread_mutex_unlock(&lock);
			return;
		}
		unsigned first = queue[--queued];
		pthread_cond_signal(&drained);
		pthread_mutex_unlock(&lock);
		pieces++;
		for (unsigned number = first; number < first + PIECE && number < limit; number++)
			found += is_prime(number);
	}
}

static void *thread(void *unused)
{
	(void)unused;
	work();
	/* The second half starts after the first is done. */
	pthread_barrier_wait(&halves);
	pthread_barrier_wait(&halves);
	work();
	pthread_exit((void *)((uintptr_t)pieces << 32 | found));
}

/* Puts the pieces of a half into the queue. */
static void produce(unsigned from, unsigned to)
{
	for (unsigned first = from; first < to; first += PIECE) {
		pthread_mutex_lock(&lock);
		while (queued == QUEUE)
			pthread_cond_wait(&drained, &lock);
		queue[queued++] = first;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	over = 1;
	pthread_cond_broadcast(&filled);
	pthread_mutex_unlock(&lock);
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
	print(at);
}

int main(int count, char **arguments)
{
	pthread_t threads[MAX_THREADS];
	unsigned workers = count > 1 ? parse(arguments[1]) : 2, sum = 0, taken = 0;
	limit = count > 2 ? parse(arguments[2]) : 100000;
	if (workers < 1 || workers > MAX_THREADS)
		return 2;
	pthread_barrier_init(&halves, NULL, workers + 1);
	for (unsigned i = 0; i < workers; i++)
		if (pthread_create(&threads[i], NULL, thread, NULL) != 0)
			return 3;
	unsigned middle = limit / 2 / PIECE * PIECE;
	produce(0, middle);
	pthread_barrier_wait(&halves);
	over = 0;
	pthread_barrier_wait(&halves);
	produce(middle, limit);
	for (unsigned i = 0; i < workers; i++) {
		void *value;
		if (pthread_join(threads[i], &value) != 0)
			return 4;
		sum += (unsigned)(uintptr_t)value;
		taken += (unsigned)((uintptr_t)value >> 32) - 1;
	}
	print_number(sum);
	print(" primes below ");
	print_number(limit);
	print(taken == (limit + PIECE - 1) / PIECE ? "\n" : ", but pieces are missing\n");
	return found != 0 || pieces != 1;
}
