# expect: no instruction, function or stub
# The middle of another function is no entry.
.func f (any)
        test    %edi, %edi
        je      inside
        .return
.func g ()
        nop
inside: .return
