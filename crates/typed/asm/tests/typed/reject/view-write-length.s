# expect: write of 1 bytes.*room 0
# The place behind a writable view.
.import packet 0xc000 () -> writable_view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     $4, %ecx
        cmp     %rdx, %rcx
        ja      out
        movb    $1, (%rax,%rcx)
out:    xor     %eax, %eax
        .return
