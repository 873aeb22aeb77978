# expect: read of 1 bytes.*found view of 0x.* exactly
# A view can be empty.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        movzbl  (%rax), %eax
out:    xor     %eax, %eax
        .return
