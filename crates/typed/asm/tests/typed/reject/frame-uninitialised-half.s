# expect: expected \d+ bytes of data, found
# Half of the slot was written.
.func f (any, any) frame 8
        sub     $8, %rsp
        mov     %edi, (%rsp)
        mov     (%rsp), %rax
        mov     %rax, 0x10000000
        add     $8, %rsp
        .return
