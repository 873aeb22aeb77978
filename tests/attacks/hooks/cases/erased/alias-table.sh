# The same of a read-only table of operations.
attack="alias-text full_fops"
found="read-only memory mapped writable:"
