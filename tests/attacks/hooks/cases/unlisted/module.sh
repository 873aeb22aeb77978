# The module is not in the list of modules.
attack="hook-notifier die"
found="hidden module: kyozon_attacks
hidden executable memory:
hidden notifier:"
