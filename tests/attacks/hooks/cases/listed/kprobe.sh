# A listed module probes the socket listing.
attack="hook-kprobe tcp4_seq_show"
found="sensitive function hooked: tcp4_seq_show // leads to module kyozon_attacks"
