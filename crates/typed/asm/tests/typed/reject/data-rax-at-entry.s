# expect: expected \d+ bytes of data, found
# rax at the entry is no data.
.func f (any, any)
        mov     %rax, 0x10000000
        .return
