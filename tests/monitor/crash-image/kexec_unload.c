// SPDX-License-Identifier: MIT OR Apache-2.0
/* Unloads the crash kernel, as kexec -p -u does. */
#include <linux/kexec.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	if (syscall(SYS_kexec_file_load, -1, -1, 0UL, NULL, KEXEC_FILE_UNLOAD | KEXEC_FILE_ON_CRASH)) {
		perror("kexec_file_load");
		return 1;
	}
	return 0;
}
