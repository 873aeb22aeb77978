# With vector registers: ends itself with status 7.
.import exit 60 (any) -> any
.func main () -> any frame 8
        sub     $8, %rsp
        xor     %eax, %eax
        cmp     $0x5000, %sp
        jb      out
        mov     $7, %edi
        movq    %rdi, %xmm0
        movq    %xmm0, %rdi
        call    exit
        mov     $1, %eax
out:    add     $8, %rsp
        .return
