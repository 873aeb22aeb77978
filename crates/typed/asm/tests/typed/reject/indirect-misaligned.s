# expect: read of 8 bytes.*image
# The entry begins in the middle.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        mov     t+4(%rip), %rax
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
