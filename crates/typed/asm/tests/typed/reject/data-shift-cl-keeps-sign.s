# expect: expected any, found bytes
# bt says nothing of the sign flag, which stems from the caller; with a count of 0 the shift leaves it so.
.func f (any, any) -> any
        mov     %rsi, %rcx
        bt      $3, %rdi
        shl     %cl, %rdi
        sets    %al
        movzbl  %al, %eax
        .return
