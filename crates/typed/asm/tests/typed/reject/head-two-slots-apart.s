# expect: head 0x
# The upper half of the slot changes in the loop.
.func f (any, u32) frame 8
        mov     %edi, %edi
        push    %rdi
.head
again:  mov     (%rsp), %rax
        movzbl  0x10000000(%rax), %eax
        mov     %esi, 4(%rsp)
        test    %esi, %esi
        jne     again
        lea     8(%rsp), %rsp
        .return
