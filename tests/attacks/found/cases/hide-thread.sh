# A thread is missing from its process's thread list.
attack="hide-thread $thread"
text="hidden thread: target, tid $thread of target, pid $process at .*: expected in its process's thread list"
is_back() { ls /proc/$process/task | grep -qx $thread; }
