# expect: read of 1 bytes.*found unknown
# The index was compared on one of two ways.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     0x10000000, %ecx
        mov     0x10000008, %edi
        test    %edi, %edi
        je      read
        cmp     %rdx, %rcx
        jae     out
read:   movzbl  (%rax,%rcx), %eax
out:    xor     %eax, %eax
        .return
