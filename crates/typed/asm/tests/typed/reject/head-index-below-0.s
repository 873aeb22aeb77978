# expect: malformed annotation
# An index is at least 0.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
get:    call    packet
        mov     $4, %ecx
        cmp     %rdx, %rcx
        jae     out
.head rcx: index of get from -1 room 1
again:  jmp     again
out:    xor     %eax, %eax
        .return
