# A listed module probes what kill returns.
attack="hook-kretprobe __x64_sys_kill"
found="sensitive function hooked: __x64_sys_kill // leads to module kyozon_attacks"
