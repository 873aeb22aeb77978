# expect: function 0: a field is out of range
# The first function does not begin the text.
# patch: 76 01
.func f (any)
        .return
