# expect: expected 1 bytes of data, found
# The byte that is not masked is an address's.
.func f (any)
        lea     f(%rip), %rax
        and     $0xff, %eax
        mov     %al, 0x10000000
        .return
