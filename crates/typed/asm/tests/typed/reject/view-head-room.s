# expect: head 0x.*, rcx: expected index of .* room 2
# A head says more room than there is.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
get:    call    packet
        mov     $4, %ecx
        cmp     %rdx, %rcx
        jae     out
.head rcx: index of get from 0 room 2
again:  jmp     again
out:    xor     %eax, %eax
        .return
