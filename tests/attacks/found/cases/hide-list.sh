# A process is missing from the process list.
attack="hide-list $process"
text="hidden process: target, pid $process at .*: expected in the process list, found only in .*the PID index"
is_back() { target listed 1234; }
