/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For liblzma, which masks signals when it has no threads. wasi-libc has none to mask. */
#include_next <signal.h>
#if defined(__wasi__) && !defined(SPEED_SIGNAL_H)
#define SPEED_SIGNAL_H
#include <__typedef_sigset_t.h>

static inline int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	return 0;
}
#endif
