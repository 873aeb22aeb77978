# expect: result rax: expected any, found view
# The address of a view is no result.
.import packet 0x8000 (any) -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        .return
out:    xor     %eax, %eax
        .return
