# expect: expected a checked stack as there
# The way back comes with less checked stack than the head has.
.func f (any, any)
        jmp     entry
.head
again:  nop
entry:  test    %edi, %edi
        je      out
.head
second: cmp     $0x6000, %sp
        jb      less
        mov     $0, %edi
.head rdi: any
third:  mov     %rsi, %rdi
        test    %edi, %edi
        jne     third
less:   lea     (%rsi), %rdi
        test    %edi, %edi
        jne     third
out:    .return
