# The kernel can execute memory of user mode.
attack="clear-smep"
what="CR4.SMEP cleared: CPU 0"
found="0x[0-9a-f]*$"
