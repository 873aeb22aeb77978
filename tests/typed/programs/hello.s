# Writes a line to standard output; the result is what that returned.
.import write 1 (any, any, any) -> any
.func main () -> any frame 8
        sub     $8, %rsp
        xor     %eax, %eax
        cmp     $0x5000, %sp
        jb      out
        movl    $0x6c6c6568, 0x10000000
        movl    $0x00000a6f, 0x10000004
        mov     $1, %edi
        mov     $0x10000000, %esi
        mov     $6, %edx
        call    write
out:    add     $8, %rsp
        .return
