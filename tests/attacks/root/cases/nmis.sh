# The cokernel's CPU is flooded with NMIs. They reach Linux, and ticks come in between.
control=survived wall=survived
attempt() { root nmis 1000 && [ "$(answer | sed 's/.*seen //')" -gt 10 ]; }
