# expect: import 0: a field is out of range
# The signature does not exist.
# patch: 90 01
.import log 7 (any)
.func f (any)
        .return
