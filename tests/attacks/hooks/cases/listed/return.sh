# A listed module's probe has no handler: what catches returns for it has the module's.
attack="hook-return __x64_sys_tkill"
found="sensitive function hooked: __x64_sys_tkill // leads to module kyozon_attacks"
