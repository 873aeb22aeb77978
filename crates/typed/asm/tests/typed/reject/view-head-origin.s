# expect: head 0x.*, rax: expected view of
# The view of another call.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        xor     %edi, %edi
        call    packet
.head rax: view of out at 0
again:  jmp     again
out:    xor     %eax, %eax
        .return
