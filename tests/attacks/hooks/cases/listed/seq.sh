# The lines of /proc/net/tcp pass a listed module.
attack="hook-seq"
found="operations changed: /proc/net/tcp // leads to module kyozon_attacks"
