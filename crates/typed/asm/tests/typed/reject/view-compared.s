# expect: expected flags that stem from data
# A branch would tell of the address.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        lea     8(%rax), %rcx
        cmp     %rcx, %rax
        jb      out
out:    xor     %eax, %eax
        .return
