# Counters in the frame.
.func f (u32) frame 16
        sub     $16, %rsp
        mov     %edi, 12(%rsp)
        movq    $0, (%rsp)
.head dword [stack-4]: u32, [stack-16]: any
again:  mov     12(%rsp), %eax
        movb    $0, 0x10000000(%rax)
        add     %rax, (%rsp)
        decl    12(%rsp)
        jne     again
        add     $16, %rsp
        .return
