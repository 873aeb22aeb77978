# expect: function 0: a field is out of range
# The signature does not exist.
# patch: 84 01
.func f (any)
        .return
