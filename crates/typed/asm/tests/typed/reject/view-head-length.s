# expect: head 0x.*, rdx: expected length of
# A number is not the length.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
get:    call    packet
        mov     $4, %edx
.head rdx: length of get
again:  jmp     again
out:    xor     %eax, %eax
        .return
