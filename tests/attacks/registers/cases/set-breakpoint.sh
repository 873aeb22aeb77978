# A breakpoint that Linux does not know, as hooks without a change of code use them.
attack="set-breakpoint"
what="unrecorded breakpoint DR0: CPU 0"
found="0x[0-9a-f]*; leads to module kyozon_attacks$"
