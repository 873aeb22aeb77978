# The cokernel's CPU is reset and started with the attacker's code. Linux loses that CPU, so the case has its own boot.
cpus=2
attempt() { root init && came_of=$(answer) && during=$(rate root hold 500); }
works() { [ $during = 0 ] && echo "$came_of" | grep -q 'our code runs'; }
after() { exit 0; }
wall=emulated report='wall: (INIT to CPU [0-9]+|no tick for [0-9]+ ms)'
