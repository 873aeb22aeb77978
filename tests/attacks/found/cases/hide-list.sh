# A process is missing from the process list.
attack="hide-list $process"
text="hidden process: target, pid $process .* the process list, found only in its process's thread list, the PID index"
is_back() { target listed 1234; }
