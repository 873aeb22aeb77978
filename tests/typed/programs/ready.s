# Writes a byte to standard output, then counts for ever.
.import write 1 (any, any, any) -> any
.func main () frame 8
        sub     $8, %rsp
        cmp     $0x5000, %sp
        jb      out
        movb    $0x2e, 0x10000000
        mov     $1, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        call    write
        xor     %eax, %eax
.head rax: any
again:  inc     %rax
        jmp     again
out:    add     $8, %rsp
        .return
