# A listing of sockets is shown by another function.
attack="patch-rodata tcp4_seq_ops 3 udp4_seq_show"
text="read-only data changed: tcp4_seq_ops+0x[0-9a-f]* at .*, found .*(udp4_seq_show)"
is_back() { grep -q gone /proc/kyozon-attacks; }
