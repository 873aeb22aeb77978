# A pointer in read-only data leads to another function.
attack="patch-rodata"
is_back() { ! echo x 2>/dev/null >/dev/full; }
