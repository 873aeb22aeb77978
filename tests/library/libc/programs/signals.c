/* Handlers: they return, they jump, and they interrupt calls or let them go on. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

static volatile sig_atomic_t count;
static int ends[2];
static sigjmp_buf jump;
static volatile char *volatile nowhere;

static void on_signal(int signal)
{
	(void)signal;
	count++;
}

static void on_signal_info(int signal, siginfo_t *info, void *context)
{
	count += info->si_signo == signal && info->si_pid == getpid() && context;
}

/* Ends the wait that it interrupts. */
static void on_signal_write(int signal)
{
	(void)signal;
	count++;
	if (write(ends[1], "x", 1) != 1) count = -1;
}

static void on_fault(int signal)
{
	siglongjmp(jump, signal);
}

static void handle(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	CHECK(!sigaction(signal, &action, NULL));
}

static void alarm_in(int microseconds)
{
	struct itimerval timer = {.it_value.tv_usec = microseconds};
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
}

int main(void)
{
	char byte;
	CHECK(!pipe(ends));

	/* With and without a handler that takes information; the old disposition is the program's own. */
	struct sigaction old, info = {.sa_sigaction = on_signal_info, .sa_flags = SA_SIGINFO};
	handle(SIGUSR1, on_signal, 0);
	CHECK(!raise(SIGUSR1) && count == 1);
	CHECK(!sigaction(SIGUSR1, &info, &old) && old.sa_handler == on_signal && !(old.sa_flags & SA_SIGINFO));
	CHECK(!kill(getpid(), SIGUSR1) && count == 2);
	CHECK(!sigaction(SIGUSR1, NULL, &old) && old.sa_sigaction == on_signal_info && (old.sa_flags & SA_SIGINFO));
	handle(SIGUSR1, SIG_IGN, 0);
	CHECK(!raise(SIGUSR1) && count == 2);

	/* Without SA_RESTART the call ends; with it the call goes on, and gets what the handler has written. */
	handle(SIGALRM, on_signal, 0);
	alarm_in(5000);
	CHECK(read(ends[0], &byte, 1) == -1 && errno == EINTR && count == 3);
	handle(SIGALRM, on_signal_write, SA_RESTART);
	alarm_in(5000);
	CHECK(read(ends[0], &byte, 1) == 1 && byte == 'x' && count == 4);

	/* Blocked signals wait. */
	sigset_t set, before;
	CHECK(!sigemptyset(&set) && !sigaddset(&set, SIGUSR1) && !sigprocmask(SIG_BLOCK, &set, &before));
	handle(SIGUSR1, on_signal, 0);
	CHECK(!raise(SIGUSR1) && count == 4 && sigsuspend(&before) == -1 && errno == EINTR && count == 5);
	CHECK(!sigprocmask(SIG_SETMASK, &before, NULL));

	/* A handler on a stack of its own leaves by a jump. */
	static char stack[1 << 16];
	CHECK(!sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL));
	handle(SIGSEGV, on_fault, SA_ONSTACK | SA_NODEFER);
	for (int i = 0; i < 3; i++)
		if (!sigsetjmp(jump, 1)) {
			*nowhere = 0;
			CHECK(!"reached");
		}

	/* A fault without a handler ends the program. */
	pid_t pid = fork();
	if (!pid) {
		handle(SIGSEGV, SIG_DFL, 0);
		*nowhere = 0;
	}
	int status;
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	return 0;
}
