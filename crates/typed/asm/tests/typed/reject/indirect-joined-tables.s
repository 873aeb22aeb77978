# expect: expected an entry of a call or jump table
# An entry of one table or of another.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        mov     t(%rip), %rax
        test    %edi, %edi
        je      over
        mov     other(%rip), %rax
over:   mov     $1, %edi
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
