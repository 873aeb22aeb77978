# Counts the writes that fail as they must: no such handle, one without a file, and addresses outside of the region.
.import write 1 (any, any, any) -> any
.func main () -> any frame 16
        push    %rbx
        sub     $8, %rsp
        xor     %ebx, %ebx
        cmp     $0x5000, %sp
        jb      out
        mov     $8, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        call    write
        cmp     $-9, %rax               # EBADF
        jne     out
        inc     %ebx
        mov     $-1, %rdi
        mov     $0x10000000, %esi
        mov     $1, %edx
        call    write
        cmp     $-9, %rax
        jne     out
        inc     %ebx
        mov     $7, %edi
        mov     $0x10000000, %esi
        mov     $1, %edx
        call    write
        cmp     $-9, %rax
        jne     out
        inc     %ebx
        mov     $1, %edi
        mov     $0x0fffffff, %esi
        mov     $1, %edx
        call    write
        cmp     $-14, %rax              # EFAULT
        jne     out
        inc     %ebx
        mov     $1, %edi
        movabs  $0xffff888000000000, %rsi
        mov     $1, %edx
        call    write
        cmp     $-14, %rax
        jne     out
        inc     %ebx
        mov     $1, %edi
        mov     $0x10000000, %esi
        movabs  $0xa00000001, %rdx
        call    write
        cmp     $-14, %rax
        jne     out
        inc     %ebx
out:    mov     %ebx, %eax
        add     $8, %rsp
        pop     %rbx
        .return
