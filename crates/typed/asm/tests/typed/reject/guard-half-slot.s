# expect: read of 1 bytes
# The lower half of the slot was compared.
.func f (any, any) frame 8
        sub     $8, %rsp
        mov     %rdi, (%rsp)
        cmpl    $100, (%rsp)
        ja      out
        mov     (%rsp), %rdi
        movzbl  0x10000000(%rdi), %eax
out:    add     $8, %rsp
        .return
