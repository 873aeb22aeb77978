/* A file goes from one thread to another by TCP on the loopback, and into another file. The folder is the argument. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"

#define BYTES 1000000

static struct sockaddr_in address = {.sin_family = AF_INET};

static void *send_file(void *argument)
{
	char buffer[5000];
	ssize_t bytes;
	int file = open("in", O_RDONLY), peer = socket(AF_INET, SOCK_STREAM, 0);
	(void)argument;
	CHECK(file >= 0 && peer >= 0 && !connect(peer, (struct sockaddr *)&address, sizeof address));
	while ((bytes = read(file, buffer, sizeof buffer)) > 0) CHECK(send(peer, buffer, bytes, 0) == bytes);
	CHECK(!bytes && !close(file) && !shutdown(peer, SHUT_WR));
	CHECK(recv(peer, buffer, sizeof buffer, 0) == 5 && !memcmp(buffer, "thank", 5) && !close(peer));
	return NULL;
}

static uint32_t sum(uint32_t before, const unsigned char *bytes, size_t count)
{
	while (count--) before = before * 31 + *bytes++;
	return before;
}

int main(int argc, char **argv)
{
	static unsigned char buffer[BYTES];
	uint32_t sent, got = 0, total = 0;
	pthread_t thread;
	struct stat status;
	socklen_t length = sizeof address;
	CHECK(argc == 2 && !chdir(argv[1]));
	for (int i = 0; i < BYTES; i++) buffer[i] = i * i >> 3;
	sent = sum(0, buffer, BYTES);
	int file = open("in", O_CREAT | O_RDWR | O_TRUNC, 0600);
	CHECK(file >= 0 && write(file, buffer, BYTES) == BYTES && !close(file));

	int listener = socket(AF_INET, SOCK_STREAM, 0), set = epoll_create1(0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(listener >= 0 && !bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 1));
	CHECK(!getsockname(listener, (struct sockaddr *)&address, &length) && address.sin_port);
	CHECK(!pthread_create(&thread, NULL, send_file, NULL));
	struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
	CHECK(set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, listener, &event));
	CHECK(epoll_wait(set, &event, 1, 10000) == 1 && event.data.fd == listener);
	int peer = accept(listener, NULL, NULL);
	struct pollfd entry = {.fd = peer, .events = POLLIN};
	file = open("out", O_CREAT | O_WRONLY | O_TRUNC, 0600);
	CHECK(peer >= 0 && file >= 0);
	for (ssize_t bytes; CHECK(poll(&entry, 1, 10000) == 1), (bytes = recv(peer, buffer, 4096, 0)); total += bytes) {
		CHECK(bytes > 0 && write(file, buffer, bytes) == bytes);
		got = sum(got, buffer, bytes);
	}
	CHECK(send(peer, "thank", 5, 0) == 5 && !pthread_join(thread, NULL) && !close(peer));
	CHECK(!fsync(file) && !fstat(file, &status) && status.st_size == BYTES && !close(file));
	CHECK(total == BYTES && got == sent);
	printf("%u bytes, sum %x\n", total, got);
	return 0;
}
