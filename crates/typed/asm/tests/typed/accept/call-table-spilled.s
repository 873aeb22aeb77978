# An entry of a table in a slot.
.func f (u32) frame 8
        and     $1, %edi
        lea     t(%rip), %rax
        mov     (%rax,%rdi,8), %rax
        sub     $8, %rsp
        mov     %rax, (%rsp)
        cmp     $0x5000, %sp
        jb      out
        mov     (%rsp), %rcx
        call    __x86_indirect_thunk_rcx
out:    add     $8, %rsp
        .return
.calltable t (): g, h
.func g ()
        .return
.func h ()
        .return
