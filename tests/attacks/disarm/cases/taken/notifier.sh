attack="hook-notifier netdev"
does="ip link set lo mtu $((1000 + RANDOM % 1000))"
hook="notifier at .*: netdev_chain"
