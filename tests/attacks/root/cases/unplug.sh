# The cokernel's CPU is taken out of service.
cpus=2
control=refused wall=refused
attempt() { echo 0 >/sys/devices/system/cpu/cpu$cpu/online; }
