# expect: function 0: a field is out of range
# Two functions begin at one place.
# patch: 88 00
.func f (any)
        .return
.func g (any)
        .return
