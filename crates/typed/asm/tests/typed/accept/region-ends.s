# The first and the last bytes of the region and its guard.
.func f (any, any)
        movb    $0, 0x10000000
        movabs  $0xa0fffffff, %rax
        movb    $0, (%rax)
        movq    $0, -7(%rax)
        movups  %xmm0, -15(%rax)
        .return
