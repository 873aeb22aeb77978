# The listing of the root passes a listed module.
attack="hook-directory"
found="operations changed: file system rootfs // leads to module kyozon_attacks"
