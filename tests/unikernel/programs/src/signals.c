/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Signals between threads, and what they do to calls that wait; cancellation. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t handled;
static volatile int waiting;
static int ends[2];
static sem_t semaphore;
static jmp_buf back;

static void count(int signal)
{
	/* A handler calls, too. */
	if (getpid() > 0 && signal == SIGUSR1) handled++;
}

static void jump(int signal)
{
	siglongjmp(back, signal);
}

static void handle(int flags)
{
	struct sigaction action = {.sa_handler = count, .sa_flags = flags};
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	handled = 0;
}

static void *read_byte(void *ends)
{
	char byte;
	waiting = 1;
	ssize_t got = read(*(int *)ends, &byte, 1);
	return (void *)(got < 0 ? -(long)errno : (long)got);
}

/* What read answers to a thread that is interrupted, and then gets a byte. */
static long interrupted(int flags)
{
	pthread_t thread;
	void *result;
	char byte;
	handle(flags);
	waiting = 0;
	CHECK(!pthread_create(&thread, NULL, read_byte, ends));
	while (!waiting) sched_yield();
	usleep(20000);
	CHECK(!pthread_kill(thread, SIGUSR1));
	while (!handled) sched_yield();
	usleep(20000);
	CHECK(write(ends[1], "x", 1) == 1 && !pthread_join(thread, &result));
	if ((long)result < 0) CHECK(read(ends[0], &byte, 1) == 1);
	return (long)result;
}

static void masks(void)
{
	sigset_t set, old;
	handle(0);
	CHECK(!sigemptyset(&set) && !sigaddset(&set, SIGUSR1) && !pthread_sigmask(SIG_BLOCK, &set, &old));
	CHECK(!raise(SIGUSR1) && !handled && !sigpending(&set) && sigismember(&set, SIGUSR1) == 1);
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, NULL) && handled == 1);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL) && !kill(getpid(), SIGUSR1));
	int signal;
	CHECK(!sigwait(&set, &signal) && signal == SIGUSR1 && handled == 1);
	CHECK(sigtimedwait(&set, NULL, &(struct timespec){0, 1000000}) == -1 && errno == EAGAIN);
	CHECK(!raise(SIGUSR1) && sigsuspend(&old) == -1 && errno == EINTR && handled == 2);
	CHECK(!sigpending(&set) && !sigismember(&set, SIGUSR1) && !pthread_sigmask(SIG_SETMASK, &old, NULL));
	CHECK(kill(getpid() + 1, 0) == -1 && errno == ESRCH && !kill(getpid(), 0));
}

static void jumps(void)
{
	signal(SIGUSR2, jump);
	for (int turn = 0; turn < 1000; turn++) {
		int came = sigsetjmp(back, 1);
		CHECK(!came || came == SIGUSR2);
		if (!came) {
			raise(SIGUSR2);
			CHECK(0);
		}
	}
}

static void cleanup(void *count)
{
	++*(int *)count;
}

static int cleaned;

static void *wait_for_ever(void *how)
{
	pthread_cleanup_push(cleanup, &cleaned);
	waiting = 1;
	if (!how) sem_wait(&semaphore);
	else if (how == (void *)1) poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, -1);
	else pause();
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancels(void)
{
	for (long turn = 0; turn < 60; turn++) {
		pthread_t thread;
		void *result;
		waiting = 0;
		CHECK(!pthread_create(&thread, NULL, wait_for_ever, (void *)(turn % 3)));
		while (turn % 2 && !waiting) sched_yield();
		CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result) && result == PTHREAD_CANCELED);
	}
	CHECK(cleaned == 60);
}

int main(void)
{
	CHECK(!pipe(ends) && !sem_init(&semaphore, 0, 0));
	CHECK(interrupted(0) == -EINTR && interrupted(SA_RESTART) == 1);
	masks();
	jumps();
	cancels();
	signal(SIGPIPE, SIG_IGN);
	CHECK(!close(ends[0]) && write(ends[1], "x", 1) == -1 && errno == EPIPE);
	puts("done");
	return 0;
}
