# expect: read of 1 bytes.*found view of 0x.* room 0
# The place at the length is the first one behind the view.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     $4, %ecx
        cmp     %rdx, %rcx
        ja      out
        movzbl  (%rax,%rcx), %eax
out:    xor     %eax, %eax
        .return
