# A jump table that leads back to a head: a small interpreter.
.func f (u32) -> any
        xor     %eax, %eax
.head rax: any, rdi: u32, rcx: unknown, rdx: unknown
next:   movzbl  0x10000000(%rdi), %ecx
        inc     %edi
        and     $3, %ecx
        lea     jt(%rip), %rdx
        movslq  (%rdx,%rcx,4), %rcx
        add     %rdx, %rcx
        jmp     __x86_indirect_thunk_rcx
plus:   inc     %rax
        jmp     next
minus:  dec     %rax
        jmp     next
double: add     %rax, %rax
        jmp     next
end:    .return
.jumptable jt: plus, minus, double, end
