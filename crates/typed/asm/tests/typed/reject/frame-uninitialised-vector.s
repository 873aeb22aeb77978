# expect: expected \d+ bytes of data, found
# A vector load of 16 bytes of which 8 were written.
.func f (any, any) frame 16
        sub     $16, %rsp
        mov     %rdi, (%rsp)
        movups  (%rsp), %xmm0
        add     $16, %rsp
        .return
