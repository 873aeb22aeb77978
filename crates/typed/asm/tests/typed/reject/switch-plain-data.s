# expect: expected an entry of a call or jump table
# Read-only data is no jump table.
.func f (any)
        and     $1, %edi
        lea     data(%rip), %rcx
        movslq  (%rcx,%rdi,4), %rax
        add     %rcx, %rax
        jmp     __x86_indirect_thunk_rax
one:    nop
two:    .return
.section .rodata
.p2align 2
data:   .long   one - data, two - data
