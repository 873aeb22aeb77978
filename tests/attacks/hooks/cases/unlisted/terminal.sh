# All that terminals receive passes the module.
attack="hook-terminal"
found="hidden terminal discipline:"
