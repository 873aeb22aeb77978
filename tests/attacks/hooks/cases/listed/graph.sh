# A listed module traces calls of a function and their returns.
attack="hook-graph udp4_seq_show"
found="sensitive function hooked: all functions // leads to module kyozon_attacks"
