/* vm: makes a virtual machine with KVM, which then takes the CPUs' virtualization. */
#include <fcntl.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>

int main(void)
{
	int kvm = open("/dev/kvm", O_RDWR);

	return kvm < 0 || ioctl(kvm, KVM_CREATE_VM, 0) < 0;
}
