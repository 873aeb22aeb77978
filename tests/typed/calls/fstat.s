# Repeats fstat as often as the argument says. Returns the last result.
.import fstat 5 (any, any) -> any
.func main (any) -> any frame 8
        push    %rbx
        mov     $-1, %rax
        cmp     $0x5000, %sp
        jb      out
        mov     %rdi, %rbx
.head rbx: any, rax: any, rdi: unknown
again:  xor     %edi, %edi
        mov     $0x10000000, %esi
        call    fstat
        dec     %rbx
        jne     again
out:    pop     %rbx
        .return
