# The module is neither in the list of modules nor in sysfs.
attack="hook-notifier module"
found="hidden module: kyozon_attacks
hidden executable memory:
hidden notifier:"
