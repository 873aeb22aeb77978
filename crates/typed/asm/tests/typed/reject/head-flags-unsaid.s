# expect: expected flags that stem from data
# Without the word, nothing is known of the flags at a head.
.func f (any, any) -> any
        cmp     $10, %rdi
        jb      other
.head rdi: any
same:   jae     out
        xor     %eax, %eax
        .return
out:    mov     $1, %eax
        .return
other:  cmp     $20, %rsi
        jmp     same
