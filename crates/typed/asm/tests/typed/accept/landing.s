# host: tracking
# Each place that an indirect branch leads to begins with endbr64.
.func f (any) -> any
        endbr64
        and     $1, %edi
        je      call
        lea     jt(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    endbr64
        mov     $1, %eax
        .return
two:    endbr64
call:   mov     t(%rip), %rax
        jmp     __x86_indirect_thunk_rax
.jumptable jt: one, two
.calltable t () -> any: g
.func g () -> any
        endbr64
        xor     %eax, %eax
        .return
