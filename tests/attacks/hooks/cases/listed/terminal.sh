# What all terminals receive passes a listed module.
attack="hook-terminal"
found="operations changed: line discipline n_tty // leads to module kyozon_attacks"
