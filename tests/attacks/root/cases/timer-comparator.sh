# The timer is set to a time far away, again and again.
attempt() { stop_ticks timer comparator; }
works() { ticks_stopped; }
wall=reported report='wall: write to the timer from CPU 0, rip 0x[0-9a-f]+'
