# A loop with a head.
.func sum (u32, u32) -> any
        xor     %eax, %eax
        test    %esi, %esi
        je      done
.head rax: any, rsi: u32, rcx: unknown
again:  lea     -1(%rsi), %ecx
        mov     %ecx, %esi
        mov     0x10000000(%rdi,%rcx,4), %ecx
        add     %rcx, %rax
        test    %esi, %esi
        jne     again
done:   .return
