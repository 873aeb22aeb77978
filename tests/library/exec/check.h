/* What the programs here share. The first header of a program: it asks for GNU's functions. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Ends the program with status 1 and names the line if something is false. */
#define CHECK(what)							\
	do {								\
		if (!(what)) {						\
			printf("line %d: %s: %s\n", __LINE__, #what, strerror(errno));	\
			exit(1);					\
		}							\
	} while (0)

/* A socket that listens on a free port of the loopback, and its address. */
static inline int listening(struct sockaddr_in *address)
{
	socklen_t bytes = sizeof(*address);
	int server = socket(AF_INET, SOCK_STREAM, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK(!bind(server, (void *)address, bytes) && !listen(server, 1));
	CHECK(!getsockname(server, (void *)address, &bytes) && address->sin_port);
	return server;
}
