# Writes a line to standard output, then counts for ever; needs more than half of the module's room for code.
.import write 1 (any, any, any) -> any
.func main () -> any frame 8
        sub     $8, %rsp
        xor     %eax, %eax
        cmp     $0x5000, %sp
        jb      out
        movl    $0x0a6e7572, 0x10000000
        mov     $1, %edi
        mov     $0x10000000, %esi
        mov     $4, %edx
        call    write
        xor     %eax, %eax
.head rax: any
again:  inc     %rax
        jmp     again
out:    add     $8, %rsp
        .return
.section .rodata
        .zero   1200000
