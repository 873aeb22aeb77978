# expect: function 0: a field is out of range
# The frame is deeper than allowed.
# patch: 86 01 08
.func f (any)
        .return
