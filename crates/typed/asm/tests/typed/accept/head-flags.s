# Code that two places share begins with a condition of both.
.func f (any, any) -> any
        cmp     $10, %rdi
        jb      other
.head flags, rdi: any
same:   setae   %al
        movzbl  %al, %eax
        .return
other:  cmp     $20, %rsi
        jmp     same
