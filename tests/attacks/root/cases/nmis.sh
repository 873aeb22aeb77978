# The cokernel's CPU is flooded with NMIs. They are Linux's, and reach it; ticks come in between.
control=survived wall=survived
attempt() { root nmis 1000 && [ "$(answer | sed 's/.*seen //')" -gt 10 ]; }
