# expect: expected a stack checked
# One path leads around the check.
.func f (any, any)
        test    %edi, %edi
        je      over
        cmp     $0x6000, %sp
        jb      out
over:   call    g
out:    .return
.func g ()
        .return
