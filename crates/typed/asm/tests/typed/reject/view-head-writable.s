# expect: head 0x.*, rax: expected writable view of
# A view does not become writable.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
get:    call    packet
.head rax: writable_view of get at 0
again:  jmp     again
out:    xor     %eax, %eax
        .return
