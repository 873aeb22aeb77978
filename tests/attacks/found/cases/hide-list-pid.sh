# A process is in no list and cannot be killed.
attack="hide-list-pid $process"
text="hidden process: target, pid $process at .*: expected in the process list, the PID index, .*found only in its"
is_back() { kill -0 $process 2>/dev/null && target listed 1234 && ls /proc | grep -qx $process; }
