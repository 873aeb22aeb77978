# expect: expected 8 bytes of data, found
# After a shift by 31, a bit of the upper half is left.
.func f (any) frame 8
        sub     $8, %rsp
        movl    %edi, (%rsp)
        mov     (%rsp), %rax
        shl     $31, %rax
        mov     %rax, 0x10000000
        add     $8, %rsp
        .return
