# expect: function 0|signature|out of range|ends
# The function's signature is not there.
# patch: 32 00
.func f (any)
        .return
