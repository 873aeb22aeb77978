/* Cancellation. A thread that misses its cancellation sleeps for ever, and the test's time limit ends the program. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "check.h"

#define ROUNDS 3000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t semaphore, started;
static int ends[2], cleaned;

static void clean(void *argument)
{
	cleaned++;
	if (argument) pthread_mutex_unlock(argument);
}

static void *in_read(void *argument)
{
	char byte;
	pthread_cleanup_push(clean, NULL);
	sem_post(&started);
	for (;;) CHECK(read(ends[0], &byte, 1) == -1);
	pthread_cleanup_pop(1);
	return argument;
}

static void *in_cond_wait(void *argument)
{
	pthread_mutex_lock(&mutex);
	pthread_cleanup_push(clean, &mutex);
	sem_post(&started);
	for (;;) pthread_cond_wait(&never, &mutex);
	pthread_cleanup_pop(1);
	return argument;
}

static void *in_sem_wait(void *argument)
{
	pthread_cleanup_push(clean, NULL);
	sem_post(&started);
	for (;;) sem_wait(&semaphore);
	pthread_cleanup_pop(1);
	return argument;
}

static void *in_pause(void *argument)
{
	pthread_cleanup_push(clean, NULL);
	sem_post(&started);
	for (;;) pause();
	pthread_cleanup_pop(1);
	return argument;
}

/* Makes no call, so only an asynchronous cancellation ends it. */
static void *computing(void *argument)
{
	pthread_cleanup_push(clean, NULL);
	CHECK(!pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
	sem_post(&started);
	for (;;) __asm__ volatile("");
	pthread_cleanup_pop(1);
	return argument;
}

/* A cancellation that has to wait is invisible: the call goes on. */
static void *disabled(void *argument)
{
	char byte;
	pthread_cleanup_push(clean, NULL);
	CHECK(!pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
	sem_post(&started);
	CHECK(read(ends[0], &byte, 1) == 1 && byte == 'y');
	CHECK(!pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
	pthread_testcancel();
	CHECK(!"cancelled");
	pthread_cleanup_pop(1);
	return argument;
}

static void wait_nanoseconds(long count)
{
	nanosleep(&(struct timespec){0, count}, NULL);
}

static void cancel(void *(*function)(void *), long delay, int disabled)
{
	pthread_t thread;
	void *result;
	int before = cleaned;
	CHECK(!pthread_create(&thread, NULL, function, NULL) && !sem_wait(&started));
	if (delay) wait_nanoseconds(delay);
	CHECK(!pthread_cancel(thread));
	if (disabled) {
		wait_nanoseconds(delay);
		CHECK(write(ends[1], "y", 1) == 1);
	}
	CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED && cleaned == before + 1);
}

/* One instruction after the other: the trap flag lets the processor trap after each, until the given one. Then the main
 * thread sends the cancellation, which arrives when the handler returns. */
#define TRAP_FLAG 0x100

static volatile int steps_left, reached, sent;

static void on_step(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info;
	if (--steps_left) return;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	reached = 1;
	while (!sent) sched_yield();
}

static void *stepping(void *argument)
{
	char byte;
	pthread_cleanup_push(clean, NULL);
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushf; orl %0, (%%rsp); popf; lea 128(%%rsp), %%rsp"
		: : "i"(TRAP_FLAG) : "memory", "cc");
	for (;;) read(ends[0], &byte, 1);
	pthread_cleanup_pop(1);
	return argument;
}

/* Cancels a thread at each instruction on its way into a wait; the number of instructions. */
static int cancel_at_each_step(void)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_RESTART};
	/* Also the signal of cancellations, which sigfillset would leave out. */
	memset(&action.sa_mask, -1, sizeof action.sa_mask);
	CHECK(!sigaction(SIGTRAP, &action, NULL));
	for (int steps = 1;; steps++) {
		pthread_t thread;
		void *result;
		steps_left = steps;
		reached = sent = 0;
		cleaned = 0;
		CHECK(!pthread_create(&thread, NULL, stepping, NULL));
		/* The last one waits before it has made so many steps. */
		for (int i = 0; !reached && i < 1000; i++) wait_nanoseconds(i < 900 ? 1000 : 10000000);
		int waits = !reached;
		CHECK(!pthread_cancel(thread));
		sent = 1;
		CHECK(!pthread_join(thread, &result) && result == PTHREAD_CANCELED && cleaned == 1);
		if (waits) return steps;
	}
}

int main(void)
{
	CHECK(!pipe(ends) && !sem_init(&semaphore, 0, 0) && !sem_init(&started, 0, 0));
	void *(*waiting[])(void *) = {in_read, in_cond_wait, in_sem_wait, in_pause, computing};
	for (int i = 0; i < 5; i++) cancel(waiting[i], 10000000, 0);
	cancel(disabled, 10000000, 1);
	for (int i = 0; i < ROUNDS; i++) cancel(waiting[i % 4], 0, 0);
	/* The C library and the host have some instructions each. */
	CHECK(cancel_at_each_step() > 20);
	/* The lock of the condition variable was released each time. */
	CHECK(!pthread_mutex_trylock(&mutex));
	return 0;
}
