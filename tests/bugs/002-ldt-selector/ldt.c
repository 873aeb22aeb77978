// SPDX-License-Identifier: MIT OR Apache-2.0
/* Spins with a data segment of its LDT in DS, ES and GS: reloading one of them needs the LDT. */
#include <asm/ldt.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	struct user_desc segment = { .entry_number = 0, .limit = 0xfffff, .seg_32bit = 1, .limit_in_pages = 1, .useable = 1 };
	unsigned selector = 7, now; /* entry 0 of the LDT, for user mode */

	if (syscall(SYS_modify_ldt, 1, &segment, sizeof segment)) {
		perror("modify_ldt");
		return 1;
	}
	puts("spinning");
	fflush(stdout);
	for (;;) {
		asm volatile("mov %0, %%ds; mov %0, %%es; mov %0, %%gs" : : "r"(selector));
		for (int i = 0; i < 100000; i++)
			asm volatile("");
		asm volatile("mov %%ds, %0" : "=r"(now));
		if (now != selector)
			_exit(2);
	}
}
