# expect: read of 1 bytes
# The callee may change its arguments on the stack.
.func f () frame 8
        push    $1
        cmp     $0x6000, %sp
        jb      less
        call    g
        mov     (%rsp), %rax
        movzbl  0x10000000(%rax), %eax
less:   add     $8, %rsp
        .return
.func g (; stack 1)
        .return
