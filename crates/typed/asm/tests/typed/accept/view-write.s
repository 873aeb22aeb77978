# A view that may be written: each of its bytes becomes the one that the region has at the same index, plus 1.
.import buffer 0xc000 (any) -> writable_view
.func fill (any)
        cmp     $0x5000, %sp
        jb      out
        call    buffer
        xor     %ecx, %ecx
.head rcx: u32, rdi: unknown
more:   cmp     %edx, %ecx
        jae     out
        movzbl  0x10000000(%rcx), %edi
        inc     %edi
        mov     %dil, (%rax,%rcx)
        inc     %ecx
        jmp     more
out:    .return
