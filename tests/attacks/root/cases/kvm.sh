# Another hypervisor is loaded.
attempt() { insmod /kyozon/modules/*-kvm-amd.ko; }
works() { [ -e /dev/kvm ]; }
after() { rmmod kvm_amd 2>/dev/null; }
wall=refused
