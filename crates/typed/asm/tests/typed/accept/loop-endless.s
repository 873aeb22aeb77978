# An endless loop.
.func f ()
.head
again:  jmp     again
