# The handler leads calls to the module; its own trampoline calls it.
attack="hook-ftrace tcp4_seq_show"
does="cat /proc/net/tcp"
hook="ftrace handler at .*: tcp4_seq_show"
