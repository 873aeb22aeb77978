# Reads until the end of standard input, and returns 1 if that was 1 MiB.
.import read 0 (any, any, any) -> any
.func main () -> any frame 16
        push    %rbx
        sub     $8, %rsp
        xor     %ebx, %ebx
        cmp     $0x5000, %sp
        jb      none
.head rbx: any, rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown, rdi: unknown, r8: unknown, r9: unknown
.head r10: unknown, r11: unknown
again:  xor     %edi, %edi
        mov     $0x10000000, %esi
        mov     $4096, %edx
        call    read
        test    %rax, %rax
        jle     end
        add     %rax, %rbx
        jmp     again
end:    sub     $0x100000, %rbx
        or      %rax, %rbx
        xor     %eax, %eax
        test    %rbx, %rbx
        sete    %al
        jmp     done
none:   xor     %eax, %eax
done:   add     $8, %rsp
        pop     %rbx
        .return
