# expect: expected 4 bytes of data
# Half an address of a view is no data.
.import packet 0x8000 () -> view
.func f (any) -> any
        cmp     $0x5000, %sp
        jb      out
        call    packet
        mov     %eax, 0x10000000
out:    xor     %eax, %eax
        .return
