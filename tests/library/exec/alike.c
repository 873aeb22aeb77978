/*
 * What a program sees is what it sees without exec. The argument is a folder: of an image, or of the host. Each test
 * prints a line.
 */
#include "check.h"
#include <setjmp.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int folder;
static const char *path;
static char buffer[8192] __attribute__((aligned(4096)));
static volatile int handled;

static void handler(int signal)
{
	handled++;
}

/* A connection of the library; its ends. */
static void connection(int *a, int *b)
{
	struct sockaddr_in address;
	int server = listening(&address);

	*a = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!connect(*a, (void *)&address, sizeof(address)));
	*b = accept(server, NULL, NULL);
	CHECK(*b >= 0 && !close(server));
}

static void direct(void)
{
	int fd = openat(folder, "direct", O_RDWR | O_CREAT | O_DIRECT, 0600);

	memset(buffer, 7, 4096);
	CHECK(fd >= 0 && write(fd, buffer, 4096) == 4096 && pread(fd, buffer + 4096, 4096, 0) == 4096);
	CHECK(!memcmp(buffer, buffer + 4096, 4096) && !close(fd) && !unlinkat(folder, "direct", 0));
}

/* A shared mapping shows what is written, or there is none. */
static void shared(void)
{
	int fd = openat(folder, "shared", O_RDWR | O_CREAT, 0600);
	char *map;

	CHECK(fd >= 0 && !ftruncate(fd, 4096));
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(pwrite(fd, "new", 3, 0) == 3);
	CHECK(map == MAP_FAILED ? errno == ENODEV : !memcmp(map, "new", 3));
	CHECK(!close(fd) && !unlinkat(folder, "shared", 0));
}

static int blocked(void)
{
	sigset_t now;

	CHECK(!sigprocmask(SIG_SETMASK, NULL, &now));
	return sigismember(&now, SIGUSR1);
}

/* A signal that is blocked and pending ends a wait with another mask, and is blocked again behind it. */
static void masks(void)
{
	struct sigaction action = { .sa_handler = handler };
	struct timespec time = { 5, 0 };
	struct epoll_event event = { EPOLLIN };
	sigset_t none, usr1;
	fd_set set;
	int a, b, ep = epoll_create1(0), i, result;
	struct pollfd entry;

	connection(&a, &b);
	sigemptyset(&none);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	CHECK(!sigaction(SIGUSR1, &action, NULL) && !sigprocmask(SIG_BLOCK, &usr1, NULL));
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, b, &event));
	entry = (struct pollfd) { b, POLLIN, 0 };
	for (i = 0; i < 4; i++) {
		handled = 0;
		CHECK(!kill(getpid(), SIGUSR1) && !handled);
		FD_ZERO(&set);
		FD_SET(b, &set);
		if (i == 0)
			result = pselect(b + 1, &set, NULL, NULL, &time, &none);
		else if (i == 1)
			result = ppoll(&entry, 1, &time, &none);
		else if (i == 2)
			result = epoll_pwait(ep, &event, 1, 5000, &none);
		else
			result = sigsuspend(&none);
		CHECK(result == -1 && errno == EINTR && handled == 1 && blocked());
	}
	/* Also with two signals. */
	sigaddset(&usr1, SIGUSR2);
	CHECK(!sigaction(SIGUSR2, &action, NULL) && !sigprocmask(SIG_BLOCK, &usr1, NULL));
	CHECK(!kill(getpid(), SIGUSR1) && !kill(getpid(), SIGUSR2));
	for (handled = 0; handled < 2;)
		CHECK(ppoll(&entry, 1, &time, &none) == -1 && errno == EINTR && handled && blocked());
	CHECK(write(a, "x", 1) == 1 && pselect(b + 1, &set, NULL, NULL, &time, &none) == 1 && blocked());
	CHECK(!sigprocmask(SIG_UNBLOCK, &usr1, NULL) && !close(a) && !close(b) && !close(ep));
}

static void masked_files(void)
{
	struct stat stat;
	mode_t before = umask(077);
	int fd = openat(folder, "masked", O_RDWR | O_CREAT, 0666);

	CHECK(fd >= 0 && !fstat(fd, &stat) && (stat.st_mode & 0777) == 0600);
	CHECK(umask(before) == 077 && !close(fd) && !unlinkat(folder, "masked", 0));
}

static void broken_pipe(void)
{
	struct sigaction action = { .sa_handler = handler };
	int a, b, i;

	connection(&a, &b);
	handled = 0;
	CHECK(!sigaction(SIGPIPE, &action, NULL) && !close(b));
	for (i = 0; i < 100 && write(a, "x", 1) == 1; i++)
		usleep(1000);
	CHECK(errno == EPIPE && handled == 1);
	CHECK(send(a, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE && handled == 1 && !close(a));
}

/* Calls of a socket with a timeout are not started again. */
static void timeout(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct itimerval timer = { .it_value.tv_usec = 50000 };
	struct timeval time = { .tv_sec = 5 };
	int a, b;

	connection(&a, &b);
	handled = 0;
	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &timer, NULL));
	CHECK(!setsockopt(b, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	CHECK(read(b, buffer, 1) == -1 && errno == EINTR && handled == 1 && !close(a) && !close(b));
}

static void links(void)
{
	char name[64];
	int fd = openat(folder, "link", O_RDWR | O_CREAT, 0600), again, i;

	CHECK(fd >= 0 && write(fd, "1234", 4) == 4);
	for (i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), i ? "/dev/fd/%d" : "/proc/self/fd/%d", fd);
		again = open(name, O_RDONLY);
		CHECK(again >= 0 && read(again, buffer, 10) == 4 && !close(again));
	}
	CHECK(!close(fd) && !unlinkat(folder, "link", 0));
}

static void dots(void)
{
	int fd = openat(folder, "../../../../../../../../etc/passwd", O_RDONLY), other;

	CHECK(fd >= 0 && read(fd, buffer, 4) == 4 && !close(fd));
	CHECK(!mkdirat(folder, "dots", 0700));
	fd = openat(folder, "dots", O_RDONLY | O_DIRECTORY);
	other = openat(fd, "../inner", O_RDWR | O_CREAT, 0600);
	CHECK(other >= 0 && !close(other) && !close(fd) && !unlinkat(folder, "inner", 0));
	CHECK(!unlinkat(folder, "dots", AT_REMOVEDIR));
}

/* A watch sees files of the folder, or there is none. */
static void watch(void)
{
	int fd = inotify_init1(IN_NONBLOCK), file, watched = inotify_add_watch(fd, path, IN_CREATE);

	CHECK(watched >= 0 || errno == ENOSPC);
	file = openat(folder, "watched", O_RDWR | O_CREAT, 0600);
	CHECK(file >= 0 && !close(file) && !unlinkat(folder, "watched", 0));
	CHECK(watched < 0 || read(fd, buffer, sizeof(buffer)) > 0);
	CHECK(!close(fd));
}

static sigjmp_buf back;

static void overflow(int signal)
{
	siglongjmp(back, 1);
}

static int __attribute__((noinline)) recurse(int depth)
{
	volatile char room[4096];

	room[0] = depth;
	return recurse(depth + 1) + room[0];
}

/* The stack ends where the limit says, with nothing right below. */
static void stack(void)
{
	struct sigaction action = { .sa_handler = overflow, .sa_flags = SA_ONSTACK };
	stack_t other = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

	CHECK(!sigaltstack(&other, NULL) && !sigaction(SIGSEGV, &action, NULL));
	if (!sigsetjmp(back, 1))
		printf("%d\n", recurse(0));
	action.sa_handler = SIG_DFL;
	CHECK(!sigaction(SIGSEGV, &action, NULL));
}

/* A handler with SA_RESETHAND runs once. */
static void reset(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESETHAND }, now;

	handled = 0;
	CHECK(!sigaction(SIGUSR2, &action, NULL) && !raise(SIGUSR2) && handled == 1);
	CHECK(!sigaction(SIGUSR2, NULL, &now) && now.sa_handler == SIG_DFL);
}

/* New descriptors have the lowest number that is free; one that is closed is gone. */
static void numbers(void)
{
	enum { MOST = 40 };
	char open_now[MOST] = { 0 }, name[300];
	struct stat stat;
	int i, fd, lowest, round, flags;

	snprintf(name, sizeof(name), "%s/numbers", path);
	for (i = 0; i < MOST; i++)
		open_now[i] = fcntl(i, F_GETFD) != -1;
	for (round = 0; round < 20000; round++) {
		for (lowest = 0; open_now[lowest]; lowest++)
			;
		fd = random() % MOST;
		flags = random() % 2 ? O_CLOEXEC : 0;
		if (lowest < MOST - 2 && random() % 2) {
			fd = random() % 3 ? open(name, O_RDWR | O_CREAT | flags, 0600) :
			     random() % 2 ? open("/dev/null", O_RDONLY | flags) : fcntl(folder, F_DUPFD, 0);
			CHECK(fd == lowest);
			open_now[fd] = 1;
		} else if (fd > 2 && fd != folder) {
			CHECK(close(fd) == (open_now[fd] ? 0 : -1));
			open_now[fd] = 0;
			switch (random() % 4) {
			case 0:
				CHECK(fstat(fd, &stat) == -1 && errno == EBADF);
				break;
			case 1:
				CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
				break;
			case 2:
				CHECK(dup(fd) == -1 && errno == EBADF);
			}
		}
		if (open_now[fd] && fd > 2 && !(round % 7))
			CHECK(fcntl(fd, F_SETFD, random() % 2) == 0);
	}
	for (i = 3; i < MOST; i++)
		if (i != folder && open_now[i])
			CHECK(!close(i));
	for (i = 0; i < 2; i++) {
		fd = open(name, O_RDWR | (i ? O_CLOEXEC : 0));
		CHECK(fd > 2 && fcntl(fd, F_GETFD) == (i ? FD_CLOEXEC : 0) && !close(fd));
	}
	CHECK(!unlink(name));
}

static volatile int code;

static void note(int signal, siginfo_t *info, void *context)
{
	handled++;
	code = info->si_code;
}

/* A signal of a fault that a process or a timer sends. */
static void sent(void)
{
	struct sigaction action = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
	struct sigaction ignore = { .sa_handler = SIG_IGN }, usual = { .sa_handler = SIG_DFL };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL };
	struct itimerspec time = { .it_value.tv_nsec = 20000000 };
	int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL }, a, b, i;
	timer_t timer;

	connection(&a, &b);
	for (i = 0; i < 4; i++) {
		handled = 0;
		CHECK(!sigaction(signals[i], &action, NULL) && !kill(getpid(), signals[i]));
		CHECK(handled == 1 && code == SI_USER);
		event.sigev_signo = signals[i];
		CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer) && !timer_settime(timer, 0, &time, NULL));
		CHECK(read(b, buffer, 1) == -1 && errno == EINTR && handled == 2 && code == SI_TIMER);
		CHECK(!timer_delete(timer) && !sigaction(signals[i], &ignore, NULL) && !kill(getpid(), signals[i]));
		CHECK(!sigaction(signals[i], &usual, NULL) && handled == 2 && !blocked());
	}
	CHECK(!close(a) && !close(b));
}

/* A file does not grow beyond the limit. */
static void sizes(void)
{
	struct sigaction action = { .sa_handler = handler };
	struct rlimit limit, small;
	int fd = openat(folder, "sizes", O_RDWR | O_CREAT, 0600);

	handled = 0;
	CHECK(fd >= 0 && !sigaction(SIGXFSZ, &action, NULL) && !getrlimit(RLIMIT_FSIZE, &limit));
	small = limit;
	small.rlim_cur = 4096;
	CHECK(!setrlimit(RLIMIT_FSIZE, &small) && write(fd, buffer, 8192) == 4096 && !handled);
	CHECK(write(fd, buffer, 1) == -1 && errno == EFBIG && handled == 1);
	CHECK(ftruncate(fd, 8192) == -1 && errno == EFBIG && handled == 2);
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit) && write(fd, buffer, 8192) == 8192 && handled == 2);
	CHECK(!close(fd) && !unlinkat(folder, "sizes", 0));
}

/* A debugger starts its program so. */
static void traced(void)
{
	int status;
	pid_t pid = vfork();

	if (!pid) {
		if (!ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			execl("/bin/sh", "sh", "-c", "exit 3", NULL);
		_exit(127);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	CHECK(!ptrace(PTRACE_CONT, pid, NULL, NULL) && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

/* Descriptors up to the limit can be used and closed. */
static void many(void)
{
	struct rlimit limit, now;
	int *fds = malloc(4096 * sizeof(int)), count = 0, i;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	now = limit;
	now.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
	CHECK(!setrlimit(RLIMIT_NOFILE, &now));
	while (count < 4096 && (fds[count] = openat(folder, ".", O_RDONLY)) >= 0)
		count++;
	CHECK(count > (int)now.rlim_cur - 64);
	for (i = 0; i < count; i += 2)
		CHECK(!close(fds[i]));
	CHECK(!close_range(fds[1], ~0U, 0) && fcntl(fds[count - 1], F_GETFD) == -1);
	i = openat(folder, ".", O_RDONLY);
	CHECK(i >= 0 && !close(i) && !setrlimit(RLIMIT_NOFILE, &limit));
	free(fds);
}

static void spawn(void)
{
	char *words[] = { "none", NULL };
	pid_t pid;

	CHECK(posix_spawn(&pid, "/nonexistent/none", NULL, NULL, words, words + 1) == ENOENT);
}

int main(int argc, char **argv)
{
	struct { const char *name; void (*test)(void); } tests[] = {
		{ "direct", direct }, { "shared", shared }, { "masks", masks }, { "umask", masked_files },
		{ "broken-pipe", broken_pipe }, { "timeout", timeout }, { "links", links }, { "dots", dots },
		{ "watch", watch }, { "stack", stack }, { "reset", reset }, { "spawn", spawn },
		{ "numbers", numbers }, { "sent", sent }, { "sizes", sizes },
		{ "traced", traced }, { "many", many },
	};
	unsigned int i;

	path = argv[1];
	setvbuf(stdout, NULL, _IONBF, 0);
	for (i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		if (argc > 2 && strcmp(argv[2], tests[i].name))
			continue;
		folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(folder >= 0);
		alarm(20);
		tests[i].test();
		printf("%s: ok\n", tests[i].name);
		close(folder);
	}
	return 0;
}
