# expect: read of 8 bytes.*image
# The index is before the table.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        lea     t-8(%rip), %rax
        mov     (%rax), %rax
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
