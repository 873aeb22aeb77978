# expect: argument rdi: expected any, found view
# A view is no argument.
.import packet 0x8000 (any) -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     %rax, %rdi
        call    packet
out:    xor     %eax, %eax
        .return
