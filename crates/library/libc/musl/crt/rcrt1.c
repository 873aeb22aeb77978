/* SPDX-License-Identifier: MIT */
/* Replaces musl's file: the start of a static position-independent program. It takes the seam from the auxiliary
 * vector between the relocations (dlstart.c) and the first system call (__libc_start_main). */
#define START "_start"
#define _dlstart_c _start_c
#include "../ldso/dlstart.c"
#include "syscall.h"

#define TEXT_OF(value) #value
#define TEXT(value) TEXT_OF(value)

/* Says that this is a program, and of which version of its host's interface. */
__asm__(".pushsection .note.kyozon, \"a\", @note\n"
	".balign 4\n"
	".long 7, 4, 2\n"
	".asciz \"Kyozon\"\n"
	".balign 4\n"
	".long " TEXT(KYOZON_SEAM_VERSION) "\n"
	".popsection");

int main();
weak void _init();
weak void _fini();
int __libc_start_main(int (*)(), int, char **, void (*)(), void (*)(), void (*)());

/* The only system-call instruction of a program. It tells a user who starts the program directly what to do instead,
 * before any other code runs; scripts/libc.sh checks that there is no other. */
static __attribute__((__noipa__)) long enter_linux(long number, long a1, long a2, long a3)
{
	long result;
	__asm__ __volatile__("syscall"
		: "=a"(result) : "a"(number), "D"(a1), "S"(a2), "d"(a3) : "rcx", "r11", "memory");
	return result;
}

static _Noreturn void refuse(const char *line, size_t bytes)
{
	enter_linux(SYS_write, 2, (long)line, bytes);
	for (;;) enter_linux(SYS_exit_group, 127, 0, 0);
}

#define REFUSE(line) refuse(line "\n", sizeof line)

hidden void __dls2(unsigned char *base, size_t *sp)
{
	size_t *auxv = sp + 1 + *sp + 1;
	while (*auxv++);
	while (auxv[0] && auxv[0] != AT_KYOZON) auxv += 2;
	if (!auxv[0])
		REFUSE("this program needs kyozon exec: run kyozon exec PROGRAM ARGUMENTS");
	const struct kyozon_seam *seam = (void *)auxv[1];
	if (seam->version != KYOZON_SEAM_VERSION)
		REFUSE("this program and its host have different versions of kyozon: link it with kyozon cc again");
	__kyozon_seam = *seam;
	__libc_start_main(main, *sp, (void *)(sp + 1), _init, _fini, 0);
}
