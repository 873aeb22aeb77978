# Packets are looked at before routing, as a magic packet is.
attack="hook-netfilter"
found="hidden netfilter hook:"
