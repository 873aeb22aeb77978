# The timer's interrupt is switched off.
attempt() { stop_ticks timer enable; }
works() { ticks_stopped; }
wall=reported report='wall: write to the timer from CPU 0, rip 0x[0-9a-f]+'
