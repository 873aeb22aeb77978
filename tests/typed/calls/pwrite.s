# Repeats pwrite as often as the argument says. Returns the last result.
.import pwrite 18 (any, any, any, any) -> any
.func main (any) -> any frame 8
        push    %rbx
        mov     $-1, %rax
        cmp     $0x5000, %sp
        jb      out
        mov     %rdi, %rbx
.head rbx: any, rax: any, rdi: unknown
again:  xor     %edi, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        xor     %ecx, %ecx
        call    pwrite
        dec     %rbx
        jne     again
out:    pop     %rbx
        .return
