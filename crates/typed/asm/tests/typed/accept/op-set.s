# setcc of each condition, into registers and memory.
.func f (any, any)
        cmp     %rsi, %rdi
        seto    %al
        setno   %al
        setb    %al
        setae   %al
        sete    %al
        setne   %al
        setbe   %al
        seta    %al
        sets    %al
        setns   %al
        setp    %al
        setnp   %al
        setl    %al
        setge   %al
        setle   %al
        setg    %al
        setb    %ah
        setl    0x10000000
        mov     %al, 0x10000000
        mov     %ah, 0x10000000
        .return
