# A comparison bounds a slot.
.func f (any, any) frame 8
        push    %rdi
        cmpq    $1000, (%rsp)
        ja      out
        mov     (%rsp), %rax
        movzbl  0x10000000(%rax), %ecx
out:    lea     8(%rsp), %rsp
        .return
