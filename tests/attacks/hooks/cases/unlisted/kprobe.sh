# A probe of the socket listing.
attack="hook-kprobe tcp4_seq_show"
found="hidden kprobe handler:"
