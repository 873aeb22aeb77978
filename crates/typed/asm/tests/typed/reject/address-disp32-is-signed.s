# expect: write of 1 bytes.*found
# A displacement of 32 bits is sign-extended.
.func f (any, any)
        mov     %edi, %edi
        movb    $0, -0x70000000(%rdi)
        .return
