# expect: read of 8 bytes.*image
# The range has entries of two tables.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        and     $7, %edi
        lea     t(%rip), %rax
        cmp     $4, %edi
        ja      out
        mov     (%rax,%rdi,8), %rax
        mov     $1, %edi
        call    __x86_indirect_thunk_rax
out:    .return
.func g (u32) -> any
        xor     %eax, %eax
        .return
.func h (u32) -> any
        xor     %eax, %eax
        .return
.calltable t (u32) -> any: g, h, g, h
.calltable other (): e
.func e ()
        .return
