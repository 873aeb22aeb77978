# expect: expected 4 bytes of data, found
# Only an and makes 0 of what is not data.
.func f (any)
        lea     f(%rip), %rax
        mov     %dil, %al
        mov     $1, %ecx
        or      %ecx, %eax
        mov     %eax, 0x10000000
        .return
