/* vm: has KVM make a virtual machine, which takes the CPUs' virtualization. */
#include <fcntl.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>

int main(void)
{
	int kvm = open("/dev/kvm", O_RDWR);

	return kvm < 0 || ioctl(kvm, KVM_CREATE_VM, 0) < 0;
}
