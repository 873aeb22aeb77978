# With vector registers: writes 1 MiB of zeros, 4,096 bytes at a time, and returns 1 if all were written.
.import write 1 (any, any, any) -> any
.func main () -> any frame 16
        push    %rbx
        sub     $8, %rsp
        xor     %ebx, %ebx
        cmp     $0x5000, %sp
        jb      out
.head rbx: any, rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown
.head r10: unknown, r11: unknown
again:  movups  %xmm0, 0x10000ff8
        mov     $1, %edi
        mov     $0x10000000, %esi
        mov     $4096, %edx
        call    write
        test    %rax, %rax
        jle     out
        add     %rax, %rbx
        cmp     $0x100000, %rbx
        jne     again
        mov     $1, %ebx
        jmp     done
out:    xor     %ebx, %ebx
done:   mov     %ebx, %eax
        add     $8, %rsp
        pop     %rbx
        .return
