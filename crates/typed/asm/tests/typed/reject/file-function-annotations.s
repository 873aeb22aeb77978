# expect: function 0: a field is out of range
# The first function's annotations do not begin them.
# patch: 80 01
.func f (any)
        .return
