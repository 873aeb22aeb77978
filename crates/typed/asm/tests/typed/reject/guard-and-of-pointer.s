# expect: expected flags that stem from data
# The flags of a result that is not all data would tell of an address.
.func f (any)
        lea     f(%rip), %rax
        mov     %dil, %al
        and     $0xffff, %eax
        jz      out
out:    .return
