/*
 * again: boots another kernel, /boot/vmlinuz with /boot/initrd, by kexec. It uses one CPU: with more, an emulated boot
 * of 6.12 can fail by itself (docs/emulators.md).
 */
#include <fcntl.h>
#include <linux/reboot.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	static const char line[] = "console=ttyS0 panic=-1 quiet nr_cpus=1";
	int kernel = open("/boot/vmlinuz", O_RDONLY), initrd = open("/boot/initrd", O_RDONLY);

	if (syscall(SYS_kexec_file_load, kernel, initrd, sizeof(line), line, 0L))
		return 1;
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC, 0);
	return 2;
}
