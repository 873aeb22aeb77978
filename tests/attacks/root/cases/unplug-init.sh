# As unplug-unasked; the CPU is then reset and started with the attacker's code.
cpus=2
online=/sys/devices/system/cpu/cpu1/online
attempt() { root hotplug && echo 0 >$online && root init && came_of=$(answer); }
works() { echo "$came_of" | grep -q 'our code runs'; }
after() { echo 1 >$online; }
wall=emulated report='wall: (INIT to CPU [0-9]+|no tick for [0-9]+ ms)'
