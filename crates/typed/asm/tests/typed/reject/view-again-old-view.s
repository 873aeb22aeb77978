# expect: read of 1 bytes.*found unknown
# The view of the last time, with an index of this time.
.import packet 0x8000 () -> view
.func f () frame 16
        push    %rbx
        push    %rbp
        cmp     $0x5000, %sp
        jb      out
        jmp     first
.head rbx: view of get at 0, rbp: length of get, rsp: stack-16, checked: stack-240
.head [stack-8]: saved rbx, [stack-16]: saved rbp, rax: unknown, rdx: unknown, rcx: unknown, rdi: unknown
again:  xor     %edi, %edi
        jmp     get
first:  xor     %edi, %edi
get:    call    packet
        mov     $4, %ecx
        cmp     %rdx, %rcx
        jae     out
        movzbl  (%rbx,%rcx), %edi
        mov     %rax, %rbx
        mov     %rdx, %rbp
        jmp     again
out:    pop     %rbp
        pop     %rbx
        .return
