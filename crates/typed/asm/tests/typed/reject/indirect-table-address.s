# expect: expected an entry of a call or jump table
# The table itself is no function.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        lea     t(%rip), %rax
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
