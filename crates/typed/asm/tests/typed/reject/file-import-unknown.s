# expect: import 0: a field is out of range
# An import's code may use what it gets.
# patch: 66 05
.import log 7 (any)
.func f (any)
        .return
