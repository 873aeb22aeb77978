# expect: write of 4 bytes.*image
# Read-only data does not change.
.func f (any, any)
        mov     %edi, jt(%rip)
one:    nop
two:    .return
.jumptable jt: one, two
