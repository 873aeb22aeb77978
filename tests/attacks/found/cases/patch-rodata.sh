# A pointer in read-only data leads to another function.
attack="patch-rodata"
text="read-only data changed: full_fops+0x[0-9a-f]* at .*, found .*(write_null)"
is_back() { ! echo x 2>/dev/null >/dev/full; }
