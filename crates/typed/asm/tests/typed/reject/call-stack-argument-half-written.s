# expect: write of 8 bytes.*unknown
# The callee may write all eight bytes of its argument on the stack.
.func f () frame 8
        push    $0
        cmp     $0x5000, %sp
        jb      less
        call    g
        mov     4(%rsp), %ecx
        mov     %rcx, (%rsp,%rcx)
less:   add     $8, %rsp
        .return
.func g (; stack 1 u32 0)
        mov     0x10000000, %rax
        mov     %rax, 8(%rsp)
        .return
