attack="hook-netfilter"
does="ping -c 1 -W 1 127.0.0.1"
hook="netfilter hook at "
