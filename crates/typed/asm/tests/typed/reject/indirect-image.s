# expect: expected an entry of a call or jump table
# The address of a function is no entry of a table.
.func f (any, any)
        cmp     $0x6000, %sp
        jb      out
        lea     g(%rip), %rax
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
