# expect: expected \d+ bytes of data, found
# A fresh slot holds what was there before.
.func f (any, any) frame 8
        sub     $8, %rsp
        mov     (%rsp), %rax
        mov     %rax, 0x10000000
        add     $8, %rsp
        .return
