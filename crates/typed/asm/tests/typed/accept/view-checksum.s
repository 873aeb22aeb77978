# The sum of a view: words of 8 bytes, then single bytes. The argument is passed to the import.
.import packet 0x8000 (any) -> view
.func sum (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        xor     %esi, %esi
        xor     %ecx, %ecx
.head rcx: u32, rsi: any, rdi: unknown
words:  lea     8(%rcx), %rdi
        cmp     %rdx, %rdi
        ja      bytes
        add     -8(%rax,%rdi), %rsi
        mov     %rdi, %rcx
        jmp     words
.head rdi: unknown, rcx: u32
bytes:  cmp     %rdx, %rcx
        jae     done
        movzbl  (%rax,%rcx), %edi
        add     %rdi, %rsi
        inc     %rcx
        jmp     bytes
done:   mov     %rsi, %rax
        .return
out:    xor     %eax, %eax
        .return
