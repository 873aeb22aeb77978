# With a count of 0 the flags stay: the carry stems from data either way.
.func f (any, any) -> any
        mov     %rsi, %rcx
        bt      $3, %rdi
        shl     %cl, %rdi
        setb    %al
        movzbl  %al, %eax
        .return
