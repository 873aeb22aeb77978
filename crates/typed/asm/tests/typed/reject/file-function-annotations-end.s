# expect: function 1: a field is out of range
# Annotations that are not there.
# patch: 92 01
.func f (any)
        .return
.func g (any)
        .return
