# Calls both functions of a table.
.func main () -> any frame 24
        push    %rbx
        sub     $16, %rsp
        xor     %ebx, %ebx
        cmp     $0x5000, %sp
        jb      out
        xor     %edi, %edi
        lea     t(%rip), %rax
        mov     (%rax,%rdi,8), %rcx
        call    __x86_indirect_thunk_rcx
        mov     %rax, %rbx
        mov     $1, %edi
        lea     t(%rip), %rax
        mov     (%rax,%rdi,8), %rcx
        call    __x86_indirect_thunk_rcx
        add     %rax, %rbx
out:    mov     %rbx, %rax
        add     $16, %rsp
        pop     %rbx
        .return
.calltable t () -> any: g, h
.func g () -> any
        mov     $40, %eax
        .return
.func h () -> any
        mov     $2, %eax
        .return
