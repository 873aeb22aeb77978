/*
 * Linux keeps all vector registers, masks, and the control words of floating point across a system call. Fills them,
 * makes calls of the library, and compares. The argument is a folder of an image.
 */
#include "check.h"
#include <sys/mman.h>
#include <sys/stat.h>

struct registers {
	unsigned char vectors[32][64];
	unsigned long masks[8];
	long stack;			/* the top of the x87 stack */
	unsigned int mxcsr;
	unsigned short control;
};

static struct registers in, out;
static long arguments[7];
static int wide;	/* AVX-512 */

#define EACH16	"0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
#define EACH32	EACH16 ",16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
#define LOAD(instruction, register, each, size, from)	\
	".irp n," each "\n" instruction " " #size "*\\n(" from "), %%" register "\\n\n.endr\n"
#define STORE(instruction, register, each, size, to)	\
	".irp n," each "\n" instruction " %%" register "\\n, " #size "*\\n(" to ")\n.endr\n"

#define CALL								\
	"mov (%[a]), %%rax\n mov 8(%[a]), %%rdi\n mov 16(%[a]), %%rsi\n mov 24(%[a]), %%rdx\n"	\
	"mov 32(%[a]), %%r10\n mov 40(%[a]), %%r8\n mov 48(%[a]), %%r9\n"	\
	"ldmxcsr 2120(%[in])\n fldcw 2124(%[in])\n fildl 2112(%[in])\n"	\
	"syscall\n"							\
	"stmxcsr 2120(%[out])\n fnstcw 2124(%[out])\n fistpll 2112(%[out])\n"

#define CLOBBERS "rcx", "rdi", "rsi", "rdx", "r10", "r8", "r9", "r11", "memory"

_Static_assert(sizeof(struct registers) == 2128 && __builtin_offsetof(struct registers, mxcsr) == 2120, "layout");

static long call(long number, long a, long b, long c, long d, long e)
{
	long result, values[7] = { number, a, b, c, d, e, 0 };
	struct registers *before = &in, *after = &out;

	memcpy(arguments, values, sizeof(values));
	memset(&out, 0, sizeof(out));
	if (wide)
		asm volatile(LOAD("vmovdqu64", "zmm", EACH32, 64, "%[in]") LOAD("kmovq 2048+", "k", "1,2,3,4,5,6,7", 8, "%[in]")
			     CALL STORE("vmovdqu64", "zmm", EACH32, 64, "%[out]")
			     ".irp n,1,2,3,4,5,6,7\n kmovq %%k\\n, 2048+8*\\n(%[out])\n.endr\n vzeroupper\n"
			     : "=&a"(result) : [a]"r"(arguments), [in]"r"(before), [out]"r"(after) : CLOBBERS);
	else
		asm volatile(LOAD("vmovdqu", "ymm", EACH16, 64, "%[in]")
			     CALL STORE("vmovdqu", "ymm", EACH16, 64, "%[out]") "vzeroupper\n"
			     : "=&a"(result) : [a]"r"(arguments), [in]"r"(before), [out]"r"(after) : CLOBBERS);
	asm volatile("fninit");
	asm volatile("ldmxcsr %0" :: "m"(*(unsigned int[]) { 0x1f80 }));
	return result;
}

static int failed;

/* Prints the registers that a call has lost. */
static void compare(const char *what)
{
	int i, lost = 0, bytes = wide ? 64 : 32;

	for (i = 0; i < (wide ? 32 : 16); i++)
		lost += memcmp(in.vectors[i], out.vectors[i], bytes) != 0;
	for (i = 1; i < 8 && wide; i++)
		lost += in.masks[i] != out.masks[i];
	if (in.stack != out.stack || in.mxcsr != out.mxcsr || in.control != out.control)
		printf("%s: %ld %x %x\n", what, out.stack, out.mxcsr, out.control);
	if (lost)
		printf("%s: %d registers lost\n", what, lost);
	failed |= lost || in.stack != out.stack || in.mxcsr != out.mxcsr || in.control != out.control;
}

/* A call that must succeed; those with one that must fail are below. */
#define KEEP(number, ...)	keep(#number, SYS_##number, (long[6]) { __VA_ARGS__ })

static long keep(const char *name, long number, long *a)
{
	int round;
	long result;

	/* The first time by SIGSYS, then by a jump. */
	for (round = 0; round < 2; round++) {
		result = call(number, a[0], a[1], a[2], a[3], a[4]);
		compare(name);
		if (number == SYS_open || number == SYS_socket || number == SYS_dup)
			CHECK(result > 2 && !close(result));
	}
	return result;
}

static int a, b, p[2];
static char buffer[1 << 17];
static volatile int handled;

static void handler(int signal)
{
	/* The interrupted code must get back what this destroys. */
	asm volatile("vzeroall");
	if (wide)
		asm volatile(".irp n,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n vpxorq %%zmm\\n, %%zmm\\n, %%zmm\\n\n.endr\n"
			     ".irp n,1,2,3,4,5,6,7\n kxorq %%k\\n, %%k\\n, %%k\\n\n.endr" :: : "memory");
	CHECK(write(a, "x", 1) == 1);
	handled++;
}

static void alarm_in(int microseconds)
{
	struct itimerval time = { .it_value.tv_usec = microseconds };

	CHECK(!setitimer(ITIMER_REAL, &time, NULL));
}

static void *later(void *what)
{
	usleep(30000);
	CHECK(write(a, "x", 1) == 1);
	return NULL;
}

/* A wait that another thread ends, and one that a handler ends. */
static void waits(const char *name, long number, long *arguments, long result)
{
	pthread_t thread;
	char text[64];
	long got;

	CHECK(!pthread_create(&thread, NULL, later, NULL));
	got = call(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
	compare(name);
	CHECK(got == result && !pthread_join(thread, NULL));
	if (number != SYS_read && number != SYS_recvfrom)
		CHECK(read(b, buffer, 1) == 1);
	alarm_in(30000);
	handled = 0;
	got = call(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
	snprintf(text, sizeof(text), "%s with a signal", name);
	compare(text);
	CHECK(handled == 1 && (got == result || got == -EINTR));
	if (got == -EINTR || (number != SYS_read && number != SYS_recvfrom))
		CHECK(read(b, buffer, 1) == 1);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;
	struct epoll_event event = { EPOLLIN }, events[4];
	struct pollfd entries[2];
	socklen_t bytes = sizeof(address);
	int fd, server = socket(AF_INET, SOCK_STREAM, 0), ep = epoll_create1(0), i;
	char path[256], other[256];
	sigset_t mask;

	if (!__builtin_cpu_supports("avx")) {
		printf("vectors: ok\n");
		return 0;
	}
	wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
	for (i = 0; i < sizeof(in); i++)
		((unsigned char *)&in)[i] = i * 7 + 1;
	in.stack = 0x1234567;
	in.mxcsr = 0x7f80;	/* rounds towards zero */
	in.control = 0x0f7f;
	CHECK(!bind(server, (void *)&address, bytes) && !listen(server, 1));
	CHECK(!getsockname(server, (void *)&address, &bytes));
	a = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!connect(a, (void *)&address, bytes));
	b = accept(server, NULL, NULL);
	CHECK(b > 2 && !pipe(p) && !sigaction(SIGALRM, &action, NULL));
	sigemptyset(&mask);
	snprintf(path, sizeof(path), "%s/vectors", argv[1]);
	snprintf(other, sizeof(other), "%s/other", argv[1]);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	CHECK(fd > 2 && !ftruncate(fd, sizeof(buffer)));

	KEEP(getpid);
	KEEP(open, (long)path, O_RDWR);
	KEEP(stat, (long)path, (long)buffer);
	KEEP(fstat, fd, (long)buffer);
	KEEP(pwrite64, fd, (long)buffer, sizeof(buffer), 0);
	KEEP(pread64, fd, (long)buffer, sizeof(buffer), 0);
	KEEP(pread64, fd, (long)buffer, 1, 0);
	KEEP(lseek, fd, 0, SEEK_SET);
	KEEP(getdents64, open(argv[1], O_RDONLY), (long)buffer, sizeof(buffer));
	KEEP(mmap, 0, 65536, PROT_READ, MAP_PRIVATE, fd);
	KEEP(rename, (long)path, (long)other);
	KEEP(rename, (long)other, (long)path);
	KEEP(readlink, (long)"/proc/self/exe", (long)buffer, 256);
	KEEP(chdir, (long)argv[1]);
	KEEP(getcwd, (long)buffer, 256);
	KEEP(access, (long)"vectors", 0);
	KEEP(access, (long)"/etc/passwd", 0);
	KEEP(mkdir, (long)"/none/none", 0);
	KEEP(sendfile, p[1], fd, 0, 100);
	KEEP(fsync, fd);
	KEEP(dup, a);
	KEEP(fcntl, a, F_GETFL);
	KEEP(fcntl, p[0], F_GETFL);
	KEEP(socket, AF_INET, SOCK_DGRAM, 0);
	KEEP(getsockname, a, (long)&address, (long)&bytes);
	KEEP(brk, 0);
	KEEP(rt_sigaction, SIGALRM, 0, (long)&old, 8);
	KEEP(rt_sigprocmask, SIG_BLOCK, (long)&mask, 0, 8);
	KEEP(umask, 022);
	KEEP(write, a, (long)buffer, 1);
	KEEP(read, b, (long)buffer, 1);
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, b, &event));
	entries[0] = (struct pollfd) { b, POLLIN, 0 };
	entries[1] = (struct pollfd) { fd, POLLPRI, 0 };
	waits("read", SYS_read, (long[5]) { b, (long)buffer, 100 }, 1);
	waits("recvfrom", SYS_recvfrom, (long[5]) { b, (long)buffer, 100 }, 1);
	waits("poll", SYS_poll, (long[5]) { (long)entries, 1, 5000 }, 1);
	CHECK(!pipe(p));
	entries[1] = (struct pollfd) { p[0], POLLIN, 0 };
	waits("poll of both", SYS_poll, (long[5]) { (long)entries, 2, 5000 }, 1);
	waits("epoll_wait", SYS_epoll_wait, (long[5]) { ep, (long)events, 4, 5000 }, 1);
	event.data.fd = p[0];
	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &event));
	waits("epoll_wait of both", SYS_epoll_wait, (long[5]) { ep, (long)events, 4, 5000 }, 1);
	if (!failed)
		printf("vectors: ok\n");
	return failed;
}
