# Ends itself with status 7, in a function that another one called.
.import exit 60 (any) -> any
.func main () -> any frame 8
        sub     $8, %rsp
        xor     %eax, %eax
        cmp     $0x5000, %sp
        jb      out
        call    inner
out:    add     $8, %rsp
        .return
.func inner () -> any frame 8
        sub     $8, %rsp
        xor     %eax, %eax
        cmp     $0x5000, %sp
        jb      1f
        mov     $7, %edi
        call    exit
        mov     $1, %eax
1:      add     $8, %rsp
        .return
