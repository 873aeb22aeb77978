# expect: expected 8 bytes of data, found stack
# Only data is written into a view.
.import packet 0xc000 () -> writable_view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     $8, %ecx
        cmp     %rdx, %rcx
        ja      out
        mov     %rsp, -8(%rax,%rcx)
out:    xor     %eax, %eax
        .return
