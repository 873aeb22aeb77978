/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What SQLite's system layer for Unix wants and wasi-libc 14 lacks. There are no users and no locks in WASI. */
#ifdef __wasi__
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_GETLK
#define F_GETLK 5
#define F_SETLK 6
#define F_RDLCK 0
#define F_WRLCK 1
#define F_UNLCK 2
#endif

static inline int fchmod(int fd, mode_t mode)
{
	return 0;
}

static inline int fchown(int fd, uid_t owner, gid_t group)
{
	return 0;
}

static inline uid_t geteuid(void)
{
	return 0;
}
#endif
