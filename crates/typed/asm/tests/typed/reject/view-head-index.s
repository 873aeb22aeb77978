# expect: head 0x.*, rcx: expected index of
# A jump back brings an index that was not compared.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
get:    call    packet
        mov     $4, %ecx
        cmp     %rdx, %rcx
        jae     out
.head rcx: index of get from 0 room 1, rdi: unknown
again:  movzbl  (%rax,%rcx), %edi
        inc     %rcx
        jmp     again
out:    xor     %eax, %eax
        .return
