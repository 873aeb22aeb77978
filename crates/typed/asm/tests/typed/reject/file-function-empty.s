# expect: function 1: a field is out of range
# The last function is behind the text.
# patch: 88 0a
.func f (any)
        .return
.func g (any)
        .return
