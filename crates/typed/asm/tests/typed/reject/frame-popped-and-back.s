# expect: expected \d+ bytes of data, found
# What was below the stack pointer is lost.
.func f (any, any) frame 8
        sub     $8, %rsp
        mov     %rdi, (%rsp)
        add     $8, %rsp
        sub     $8, %rsp
        mov     (%rsp), %rax
        mov     %rax, 0x10000000
        add     $8, %rsp
        .return
