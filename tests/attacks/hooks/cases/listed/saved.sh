# Before the handler of a listed module stands Linux's own, which looks for processes.
attack="hook-saved proc_root_readdir"
found="sensitive function hooked: proc_root_readdir // leads to module kyozon_attacks"
