# A word is overwritten by a program to which a module has mapped the page.
attempt() { poke /proc/kyozon-attacks; }
works() { is_changed; }
wall=reported report='wall: write to 0x[0-9a-f]+ from CPU [0-9]+, rip 0x[0-9a-f]+, task poke'
