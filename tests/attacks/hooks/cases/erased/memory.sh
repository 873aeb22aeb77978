# Only the memory of the module is left.
attack="hook-notifier reboot"
found="hidden executable memory:
hidden notifier:"
