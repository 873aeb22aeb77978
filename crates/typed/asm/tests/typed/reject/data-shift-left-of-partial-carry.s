# expect: expected 1 bytes of data, found
# The carry is a bit of the upper half, also if the flags were those of data before.
.func f (any) frame 8
        sub     $8, %rsp
        movl    %edi, (%rsp)
        mov     (%rsp), %rax
        test    %edi, %edi
        shl     $32, %rax
        setc    0x10000000
        add     $8, %rsp
        .return
