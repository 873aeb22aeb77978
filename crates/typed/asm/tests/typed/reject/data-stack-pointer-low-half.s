# expect: expected \d+ bytes of data, found
# Half of the stack pointer is no data either.
.func f (any, any)
        mov     %esp, 0x10000000
        .return
