# expect: no function: declare each by .func
# A program has functions.
        nop
