# A second mapping of the kernel's code, through which it can be written.
attack="alias-text"
found="read-only memory mapped writable:"
