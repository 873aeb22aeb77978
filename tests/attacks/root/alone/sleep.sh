# The machine is put to sleep past Linux: it would wake up without a hypervisor, and memory keeps its contents. Without
# a wall it sleeps for ever, so this case has no control.
attempt() { root sleep; }
wall=reported report='wall: sleep from CPU 0, rip 0x[0-9a-f]+, task sh'
