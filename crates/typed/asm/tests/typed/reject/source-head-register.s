# expect: expected a 64-bit register
# A head names whole registers.
.func f ()
.head eax: any
        .return
