# The listing of /proc passes a listed module.
attack="hook-proc"
found="operations changed: file system proc // leads to module kyozon_attacks"
