/* A program that waits for descriptors of both kernels, copies between them, duplicates and closes them. */
#include "check.h"
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>

static int a, b;	/* two ends of a connection of the library */
static int p[2];	/* a pipe of the host */
static char buffer[256];
static void *volatile bad = (void *)8;

static void connect_both(void)
{
	struct sockaddr_in address;
	socklen_t bytes = sizeof(int);
	int one = 1, value = 0, server = listening(&address);

	CHECK(server > 2);
	a = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!setsockopt(a, IPPROTO_TCP, 1, &one, sizeof(one)));
	CHECK(!getsockopt(a, IPPROTO_TCP, 1, &value, &bytes) && value);
	CHECK(!connect(a, (void *)&address, sizeof(address)));
	b = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	CHECK(b > 2 && fcntl(a, F_GETFD) == FD_CLOEXEC && fcntl(b, F_GETFD) == FD_CLOEXEC);
	CHECK(!fcntl(server, F_GETFD) && !close(server) && fcntl(server, F_GETFD) == -1 && errno == EBADF);
}

static void *later(void *what)
{
	usleep(50000);
	CHECK(write((long)what, "x", 1) == 1);
	return NULL;
}

static pthread_t write_later(int fd)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, later, (void *)(long)fd));
	return thread;
}

static void take(int fd)
{
	CHECK(read(fd, buffer, sizeof(buffer)) == 1 && buffer[0] == 'x');
}

/* Runs test when no descriptor will be ready (-1), and with a byte that comes to either kernel's descriptor. */
static void either(void (*test)(int ready))
{
	pthread_t thread;

	test(-1);
	thread = write_later(a);
	test(b);
	take(b);
	pthread_join(thread, NULL);
	thread = write_later(p[1]);
	test(p[0]);
	take(p[0]);
	pthread_join(thread, NULL);
}

static void test_poll(int ready)
{
	struct pollfd set[3] = { { b, POLLIN, 0 }, { -1, POLLIN, 0 }, { p[0], POLLIN, 0 } };

	if (ready < 0) {
		CHECK(poll(set, 3, 5) == 0);
		return;
	}
	CHECK(poll(set, 3, 5000) == 1);
	CHECK(set[ready == b ? 0 : 2].revents == POLLIN && !set[ready == b ? 2 : 0].revents);
}

static void test_ppoll(int ready)
{
	struct pollfd set[2] = { { p[0], POLLIN, 0 }, { b, POLLIN, 0 } };
	struct timespec time = { 5, 0 };
	sigset_t none;

	sigemptyset(&none);
	if (ready < 0)
		return;
	CHECK(ppoll(set, 2, &time, &none) == 1 && set[ready == b].revents == POLLIN);
}

static void test_select(int ready)
{
	struct timeval time = { ready < 0 ? 0 : 5, ready < 0 ? 5000 : 0 };
	fd_set set, out;

	FD_ZERO(&set);
	FD_ZERO(&out);
	FD_SET(b, &set);
	FD_SET(p[0], &set);
	CHECK(select((b > p[0] ? b : p[0]) + 1, &set, &out, NULL, &time) == (ready >= 0));
	if (ready < 0)
		return;
	CHECK(FD_ISSET(ready, &set) && !FD_ISSET(ready == b ? p[0] : b, &set));
}

static void test_pselect(int ready)
{
	fd_set set;

	if (ready < 0)
		return;
	FD_ZERO(&set);
	FD_SET(b, &set);
	FD_SET(p[0], &set);
	CHECK(pselect((b > p[0] ? b : p[0]) + 1, &set, NULL, NULL, NULL, NULL) == 1 && FD_ISSET(ready, &set));
}

static int ep;

static void test_epoll(int ready)
{
	struct epoll_event events[4];

	if (ready < 0) {
		CHECK(epoll_wait(ep, events, 4, 5) == 0);
		return;
	}
	CHECK(epoll_wait(ep, events, 4, 5000) == 1 && events[0].data.fd == ready && events[0].events == EPOLLIN);
	CHECK(epoll_pwait(ep, events, 4, -1, NULL) == 1 && events[0].data.fd == ready);
}

static void epolls(void)
{
	struct epoll_event event = { EPOLLIN, { .fd = b } };

	ep = epoll_create1(EPOLL_CLOEXEC);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, b, &event));
	event.data.fd = p[0];
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &event));
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &event) == -1 && errno == EEXIST);
	either(test_epoll);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_DEL, b, NULL) && !epoll_ctl(ep, EPOLL_CTL_DEL, p[0], NULL) && !close(ep));
}

static void duplicates(void)
{
	int c = dup(a), d = 100;

	CHECK(c > 2 && write(c, "x", 1) == 1 && !close(c));
	take(b);
	CHECK(dup2(a, d) == d && write(d, "x", 1) == 1);
	take(b);
	CHECK(dup2(p[1], d) == d && write(d, "x", 1) == 1);
	take(p[0]);
	CHECK(dup3(a, d, O_CLOEXEC) == d && fcntl(d, F_GETFD) == FD_CLOEXEC && write(d, "x", 1) == 1);
	take(b);
	CHECK(!close_range(d, d + 5, 0) && write(d, "x", 1) == -1 && errno == EBADF);
	CHECK(fcntl(a, F_DUPFD_CLOEXEC, 200) == 200 && !fcntl(200, F_SETFD, 0) && !fcntl(200, F_GETFD) && !close(200));
	CHECK(dup2(a, a) == a && dup(-1) == -1 && errno == EBADF);
}

static void controls(void)
{
	int count = 0, one = 1;

	CHECK(write(a, "12345", 5) == 5);
	CHECK(!ioctl(b, FIONREAD, &count) && count == 5);
	CHECK(read(b, buffer, sizeof(buffer)) == 5 && !ioctl(b, FIONBIO, &one));
	CHECK(read(b, buffer, 1) == -1 && errno == EAGAIN && fcntl(b, F_GETFL) & O_NONBLOCK);
	CHECK(!fcntl(b, F_SETFL, 0));
}

static void vectors(void)
{
	struct iovec parts[2] = { { "12", 2 }, { "345", 3 } }, into[2] = { { buffer, 1 }, { buffer + 1, 9 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

	CHECK(writev(a, parts, 2) == 5 && readv(b, into, 2) == 5 && !memcmp(buffer, "12345", 5));
	CHECK(sendmsg(a, &message, 0) == 5);
	message.msg_iov = into;
	memset(buffer, 0, 5);
	CHECK(recvmsg(b, &message, 0) == 5 && !memcmp(buffer, "12345", 5));
	CHECK(write(a, "x", 1) == 1 && read(b, bad, 1) == -1 && errno == EFAULT);
	take(b);
}

static void transfers(void)
{
	char name[] = "/tmp/mixedXXXXXX";
	int file = mkstemp(name);
	off_t offset = 2;
	loff_t start = 0;

	CHECK(file > 2 && !unlink(name) && write(file, "0123456789", 10) == 10);
	CHECK(sendfile(a, file, &offset, 5) == 5 && offset == 7);
	CHECK(read(b, buffer, 256) == 5 && !memcmp(buffer, "23456", 5));
	CHECK(splice(file, &start, p[1], NULL, 4, 0) == 4 && splice(p[0], NULL, a, NULL, 4, 0) == 4);
	CHECK(read(b, buffer, 256) == 4 && !memcmp(buffer, "0123", 4));
	CHECK(write(a, "abcd", 4) == 4 && splice(b, NULL, p[1], NULL, 4, 0) == 4);
	CHECK(read(p[0], buffer, 256) == 4 && !memcmp(buffer, "abcd", 4) && !close(file));
}

static volatile int alarms;

static void on_alarm(int signal)
{
	/* The handler runs in the program: it may call either kernel. */
	CHECK(write(a, "x", 1) == 1);
	alarms++;
}

static void alarm_in(int microseconds)
{
	struct itimerval time = { .it_value.tv_usec = microseconds };

	CHECK(!setitimer(ITIMER_REAL, &time, NULL));
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct pollfd set[2] = { { p[0], POLLIN, 0 }, { b, POLLPRI, 0 } };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(!sigaction(SIGALRM, &action, NULL));
	alarm_in(30000);
	CHECK(read(fd, buffer, 1) == -1 && errno == EINTR && alarms == 1);
	take(b);
	alarm_in(30000);
	CHECK(poll(set, 2, 5000) == -1 && errno == EINTR && alarms == 2);
	take(b);
	/* The handler writes what the call waits for. */
	action.sa_flags = SA_RESTART;
	CHECK(!sigaction(SIGALRM, &action, NULL));
	alarm_in(30000);
	take(b);
	CHECK(alarms == 3 && !close(fd));
	action.sa_handler = SIG_IGN;
	CHECK(!sigaction(SIGALRM, &action, NULL));
	raise(SIGALRM);
	CHECK(alarms == 3);
}

static void processes(void)
{
	int status = 0;
	pid_t pid = fork();

	CHECK(pid == -1 && errno == ENOSYS);
	CHECK(write(p[1], "x", 1) == 1);
	/* posix_spawn: both ends are closed when the program starts. */
	CHECK(system("cat /dev/null") == 0);
	take(p[0]);
	CHECK(!close(a) && !close(b));
	pid = fork();
	if (!pid) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		_exit(fd > 2 && !close(fd) ? 7 : 8);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
	struct { const char *name; void (*test)(void); } tests[] = {
		{ "duplicates", duplicates }, { "controls", controls }, { "vectors", vectors },
		{ "transfers", transfers }, { "epoll", epolls }, { "signals", signals }, { "processes", processes },
	};
	struct { const char *name; void (*test)(int); } waits[] = {
		{ "poll", test_poll }, { "ppoll", test_ppoll }, { "select", test_select }, { "pselect", test_pselect },
	};
	unsigned int i;

	setvbuf(stdout, NULL, _IONBF, 0);
	CHECK(!pipe(p));
	connect_both();
	for (i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		either(waits[i].test);
		printf("%s: ok\n", waits[i].name);
	}
	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		tests[i].test();
		printf("%s: ok\n", tests[i].name);
	}
	return 0;
}
