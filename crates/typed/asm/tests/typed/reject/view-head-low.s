# expect: head 0x.*, rcx: expected index of .* from 8
# A head says that an index is at least 8.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
get:    call    packet
        mov     $4, %ecx
        cmp     %rdx, %rcx
        jae     out
.head rcx: index of get from 8 room 1
again:  jmp     again
out:    xor     %eax, %eax
        .return
