# expect: head 0x.*\[stack-8, 8 bytes\]: expected saved rbx
# The saved register's slot is overwritten in the loop.
.func f (any, u32) frame 8
        push    %rbx
.head
again:  mov     %rdi, (%rsp)
        test    %esi, %esi
        jne     again
        pop     %rbx
        .return
