/*
 * A signal for the process reaches the first thread, which waits in the library, and not the one that sends it. If the
 * first one blocks it, it ends the wait of another.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS	200

static pthread_t first;
static volatile int elsewhere, rounds;

static void handler(int signal)
{
	elsewhere += !pthread_equal(pthread_self(), first);
}

static void *send_signals(void *unused)
{
	int i;

	while (rounds < ROUNDS) {
		usleep(1000);
		kill(getpid(), SIGUSR1);
		for (i = 0; i < 20; i++)
			getppid();
	}
	return NULL;
}

static int server;

static void *wait_for_signal(void *result)
{
	*(int *)result = accept(server, NULL, NULL) == -1 ? errno : 0;
	rounds = 0;
	return NULL;
}

static int other_thread(void)
{
	pthread_t thread;
	sigset_t set;
	int error = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (pthread_create(&thread, NULL, wait_for_signal, &error) || pthread_sigmask(SIG_BLOCK, &set, NULL))
		return 1;
	while (rounds) {
		usleep(10000);
		kill(getpid(), SIGUSR1);
	}
	pthread_join(thread, NULL);
	return error != EINTR;
}

int main(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_NODEFER };
	pthread_t thread;

	server = socket(AF_INET, SOCK_STREAM, 0);
	first = pthread_self();
	alarm(30);
	sigaction(SIGUSR1, &action, NULL);
	if (bind(server, (void *)&address, sizeof(address)) || listen(server, 1))
		return 1;
	pthread_create(&thread, NULL, send_signals, NULL);
	for (; rounds < ROUNDS; rounds++)
		if (accept(server, NULL, NULL) != -1 || errno != EINTR)
			return 1;
	pthread_join(thread, NULL);
	/* Linux itself chooses another thread while the first one has a signal pending. */
	if (elsewhere > ROUNDS / 10)
		printf("%d signals in another thread\n", elsewhere);
	else if (other_thread())
		printf("no signal in another thread\n");
	else
		printf("directed: ok\n");
	return 0;
}
