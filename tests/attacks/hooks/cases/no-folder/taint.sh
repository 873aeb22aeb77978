# The bits of its load are cleared in Linux's taint.
attack="clear-taint"
found="taint cleared:"
