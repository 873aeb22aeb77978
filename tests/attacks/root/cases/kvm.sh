# Another hypervisor is loaded.
attempt() { insmod /kyozon/modules/*-kvm-amd.ko; }
works() { [ -e /dev/kvm ] && rmmod kvm_amd; }
wall=refused
