# A listed module tells what the taint is. The table of settings is writable data, which no list leads to.
attack="hook-sysctl"
found="operations changed: kern_table+0x // leads to module kyozon_attacks"
