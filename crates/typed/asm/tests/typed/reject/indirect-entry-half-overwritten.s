# expect: expected an entry of a call or jump table
# Half of the entry was overwritten.
.func f (any, any) frame 8
        push    t(%rip)
        mov     %edi, (%rsp)
        pop     %rax
        mov     $1, %edi
        jmp     __x86_indirect_thunk_rax
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
