# expect: read of 1 bytes.*found unknown
# An index below the length of the last time.
.import packet 0x8000 () -> view
.func f () frame 16
        push    %rbx
        push    %rbp
        cmp     $0x5000, %sp
        jb      out
        xor     %ebx, %ebx
        xor     %ebp, %ebp
.head rbp: u32, rbx: any, rax: unknown, rcx: unknown, rdx: unknown
get:    call    packet
        movzbl  (%rax,%rbp), %edi
        mov     $4, %ebp
        cmp     %rdx, %rbp
        jae     out
        jmp     get
out:    pop     %rbp
        pop     %rbx
        .return
