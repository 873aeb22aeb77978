# A thread is missing from its process's thread list.
attack="hide-thread $thread"
is_back() { ls /proc/$process/task | grep -qx $thread; }
