/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Creates threads that end in every way that is no crash, and prints how much less room the heap has afterwards.
 * Argument: how many threads.
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

int main(int count, char **arguments)
{
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
