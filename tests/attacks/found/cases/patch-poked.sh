# A function calls a module at its entry, as if ftrace led there: it does so for another function only.
attack="hook-poked proc_pid_lookup"
text="kernel text changed: proc_pid_lookup.*: expected .*, found e8 .*leads to module kyozon_attacks"
is_back() { grep -q "^hook-poked .* gone" /proc/kyozon-attacks; }
