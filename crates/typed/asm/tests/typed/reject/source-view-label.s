# expect: no label of a call
# A view has a label of a call.
.func f ()
.head rax: length of nothing
again:  jmp     again
