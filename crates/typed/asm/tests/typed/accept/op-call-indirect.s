# An indirect call of the program's own.
.indirect
.func f (any)
        cmp     $0x5000, %sp
        jb      out
        and     $1, %edi
        lea     t(%rip), %rax
        call    *(%rax,%rdi,8)
        mov     t+8(%rip), %rax
        call    *%rax
out:    .return
.func g ()
        .return
.calltable t (): g, f2
.func f2 ()
        .return
