# expect: write of 1 bytes.*found view of
# The view is for reading only.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     0x10000000, %ecx
        cmp     %rdx, %rcx
        jae     out
        movb    $1, (%rax,%rcx)
out:    xor     %eax, %eax
        .return
