# A signature by name.
.sig operation (any, any) -> any
.func plus operation
        lea     (%rdi,%rsi), %rax
        .return
.func minus operation
        mov     %rdi, %rax
        sub     %rsi, %rax
        .return
.calltable operations operation: plus, minus
