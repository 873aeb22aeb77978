# The cokernel's image and memory are read: an image begins with "KYOZON", kept words end with "KEEP".
attempt() { root read direct; }
works() { answer | grep -q 'image 4b 59 4f 5a 4f 4e .* memory 00 00 00 00 4b 45 45 50'; }
wall=reported report='wall: read of 0x[0-9a-f]+ from CPU 0, rip 0x[0-9a-f]+'
