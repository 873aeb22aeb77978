# kyozon.ko is made to believe that nothing is loaded, that no hypervisor runs, and that no tick is due.
attempt() { stop_ticks disarm; }
works() { ticks_stopped; }
wall=survived
