# expect: head 0x.*, rax: expected view of .* exactly
# A place somewhere in a view is not its start.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
get:    call    packet
        mov     0x10000000, %ecx
        cmp     %rdx, %rcx
        jae     out
        add     %rcx, %rax
.head rax: view of get at 0
again:  jmp     again
out:    xor     %eax, %eax
        .return
