# A handler sees every key.
attack="hook-keyboard"
found="hidden notifier:"
