# Another hypervisor is loaded. If it takes the CPUs only for a virtual machine, one is made.
at_load=/sys/module/kvm/parameters/enable_virt_at_load
attempt() { insmod /kyozon/modules/*-kvm-amd.ko && { grep -q Y $at_load || vm; }; }
works() { true; }
after() { rmmod kvm_amd 2>/dev/null; }
wall=refused
