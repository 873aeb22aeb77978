# Socket listings pass a handler of ftrace.
attack="hook-ftrace tcp4_seq_show"
found="hidden ftrace handler:"
