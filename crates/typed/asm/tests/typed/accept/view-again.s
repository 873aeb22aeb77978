# One call gives view after view; nothing flows into the head of the loop over a view but jumps back.
.import packet 0x8000 (any) -> view
.func count (any) -> any frame 8
        push    %rbx
        xor     %ebx, %ebx
        cmp     $0x5000, %sp
        jb      out
        mov     $100, %edi
.head rbx: any, rdi: u32, rax: unknown, rcx: unknown, rdx: unknown, rsi: unknown
next:   dec     %edi
        mov     %edi, 0x10000000
get:    call    packet
        xor     %ecx, %ecx
        cmp     %rdx, %rcx
        jae     done
.head rcx: index of get from 0 room 1
more:   movzbl  (%rax,%rcx), %esi
        add     %rsi, %rbx
        inc     %rcx
        cmp     %rdx, %rcx
        jb      more
done:   mov     0x10000000, %edi
        test    %edi, %edi
        jne     next
out:    mov     %rbx, %rax
        pop     %rbx
        .return
