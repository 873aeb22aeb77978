# expect: expected a stack checked
# An indirect call needs a check too.
.func f (any, any)
        mov     t(%rip), %rax
        call    __x86_indirect_thunk_rax
        .return
.calltable t (): g
.func g ()
        .return
