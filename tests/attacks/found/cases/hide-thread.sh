# One thread is not in its process's list.
attack="hide-thread $thread"
is_back() { ls /proc/$process/task | grep -qx $thread; }
