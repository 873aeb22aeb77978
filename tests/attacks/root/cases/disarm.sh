# kyozon.ko is made to believe that no tick is due.
attempt() { stop_ticks disarm; }
works() { ticks_stopped; }
wall=survived
