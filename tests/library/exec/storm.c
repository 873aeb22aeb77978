/* Threads call both kernels while timers interrupt them, and handlers call both kernels, too. */
#include "check.h"

#define THREADS		4
#define ROUNDS		3000

static int spare;
static volatile long handled;
static __thread char own[16] = "thread's own";

static void handler(int signal, siginfo_t *info, void *context)
{
	int error = errno;
	struct sockaddr_in address;
	socklen_t bytes = sizeof(address);

	/* TLS must be the program's, whatever was interrupted. */
	CHECK(!strcmp(own, "thread's own"));
	CHECK(!getsockname(spare, (void *)&address, &bytes) && getppid() > 0);
	__atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
	errno = error;
}

/* A value that a system call must keep in a vector register. */
static double keep(int fd)
{
	register double value asm("xmm7") = fd + 0.5;
	register long number asm("rax") = SYS_getsockname, result asm("rax");
	struct sockaddr_in address;
	socklen_t bytes = sizeof(address);

	asm volatile("syscall" : "=a"(result), "+x"(value) : "a"(number), "D"(fd), "S"(&address), "d"(&bytes)
		     : "rcx", "r11", "memory");
	CHECK(!result);
	return value;
}

static void *work(void *arg)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(address);
	int receive = socket(AF_INET, SOCK_DGRAM, 0), send = socket(AF_INET, SOCK_DGRAM, 0), pipes[2], i, value;
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN };
	struct itimerspec time = { { 0, 300000 + 70000 * (long)arg }, { 0, 500000 } };

	event._sigev_un._tid = gettid();
	CHECK(!pipe(pipes) && !bind(receive, (void *)&address, bytes));
	CHECK(!getsockname(receive, (void *)&address, &bytes) && !connect(send, (void *)&address, bytes));
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &time, NULL));
	for (i = 0; i < ROUNDS; i++) {
		CHECK(write(send, &i, sizeof(i)) == sizeof(i));
		CHECK(read(receive, &value, sizeof(value)) == sizeof(value) && value == i);
		CHECK(write(pipes[1], &i, sizeof(i)) == sizeof(i));
		CHECK(read(pipes[0], &value, sizeof(value)) == sizeof(value) && value == i);
		CHECK(keep(send) == send + 0.5);
	}
	CHECK(!timer_delete(timer));
	return NULL;
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };
	pthread_t threads[THREADS];
	long i;

	spare = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!sigaction(SIGRTMIN, &action, NULL));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, work, (void *)i));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(handled > 10);
	printf("storm: ok\n");
	return 0;
}
