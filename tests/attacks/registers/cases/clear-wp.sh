# The kernel can write read-only memory.
attack="clear-wp"
what="CR0.WP cleared: CPU 0"
found="0x[0-9a-f]*$"
