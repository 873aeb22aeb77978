# expect: expected a multiple of 4
# A slot is at a multiple of 4.
.func f () frame 8
.head [stack-6]: any
        .return
