# A process is in no list and cannot be killed.
attack="hide-list-pid $process"
is_back() { kill -0 $process && target listed 1234 && ls /proc | grep -qx $process; }
