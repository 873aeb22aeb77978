# Another hypervisor is loaded, and wants to run a virtual machine.
attempt() { insmod /kyozon/modules/*-kvm-amd.ko && vm; }
works() { true; }
after() { rmmod kvm_amd 2>/dev/null; }
wall=refused
