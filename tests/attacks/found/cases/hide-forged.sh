# A process is missing from the process list, and its members say that it is no task.
attack="hide-forged $process"
text="hidden process: target, pid $process .* the process list, found only in its process's thread list, the PID index"
is_back() { target listed 1234; }
