# expect: source-absolute.s:4: an absolute address
# The image has no fixed address.
.func f ()
        mov     $f, %rax
        .return
