# expect: read of 1 bytes.*found unknown
# The length is another view's.
.import packet 0x8000 () -> view
.func f (any) -> any frame 8
        push    %rbx
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     %rdx, %rbx
        call    packet
        mov     $4, %ecx
        cmp     %rbx, %rcx
        jae     out
        movzbl  (%rax,%rcx), %eax
out:    pop     %rbx
        xor     %eax, %eax
        .return
