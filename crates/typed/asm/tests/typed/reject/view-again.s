# expect: head 0x.*, rbx: expected view of
# What the call gave before is gone when it runs again.
.import packet 0x8000 () -> view
.func f () frame 16
        push    %rbx
        push    %rbp
        cmp     $0x5000, %sp
        jb      out
.head rbx: view of get at 0, rax: unknown, rcx: unknown, rdx: unknown
get:    call    packet
        mov     %rax, %rbx
        jmp     get
out:    pop     %rbp
        pop     %rbx
        .return
