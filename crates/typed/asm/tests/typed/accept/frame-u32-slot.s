# Four bytes keep their range.
.func f (any, any) frame 8
        sub     $8, %rsp
        mov     %edi, 4(%rsp)
        mov     4(%rsp), %eax
        movzbl  0x10000000(%rax), %eax
        add     $8, %rsp
        .return
