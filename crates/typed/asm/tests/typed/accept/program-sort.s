# Insertion sort of 32-bit numbers, with a comparison from a call table.
.sig compare (u32, u32) -> u32
.calltable comparisons compare: below, above
.func sort (u32, u32, u32) frame 56
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        sub     $8, %rsp
        cmp     $0x5000, %sp
        jb      out
        mov     %edi, %ebx
        mov     %esi, %ebp
        and     $1, %edx
        lea     comparisons(%rip), %rax
        mov     (%rax,%rdx,8), %r15
        mov     $1, %r12d
        jmp     more
.head rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown
.head r10: unknown, r11: unknown, r12: u32, r13: unknown, r14: unknown
next:   mov     0x10000000(%rbx,%r12,4), %r14d
        mov     %r12d, %r13d
        jmp     test
.head rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown
.head r10: unknown, r11: unknown, r13: u32
shift:  lea     -1(%r13), %eax
        mov     0x10000000(%rbx,%rax,4), %esi
        mov     %esi, (%rsp)
        mov     %r14d, %edi
        call    __x86_indirect_thunk_r15
        test    %eax, %eax
        je      place
        mov     (%rsp), %eax
        mov     %eax, 0x10000000(%rbx,%r13,4)
        dec     %r13d
test:   test    %r13d, %r13d
        jne     shift
place:  mov     %r13d, %r13d
        mov     %r14d, 0x10000000(%rbx,%r13,4)
        inc     %r12d
more:   cmp     %ebp, %r12d
        jb      next
out:    add     $8, %rsp
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        .return
.func below compare
        xor     %eax, %eax
        cmp     %esi, %edi
        setb    %al
        .return
.func above compare
        xor     %eax, %eax
        cmp     %esi, %edi
        seta    %al
        .return
