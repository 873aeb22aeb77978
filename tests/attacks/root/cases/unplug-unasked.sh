# The cokernel's CPU is taken out of service, after kyozon.ko's veto was removed.
cpus=2
online=/sys/devices/system/cpu/cpu1/online
attempt() {
	root hotplug && echo 0 >$online || return 1
	during=$(rate root hold 500)
	echo 1 >$online
}
works() { [ $during = 0 ]; }
wall=emulated report='wall: (INIT to CPU [0-9]+|no tick for [0-9]+ ms)'
