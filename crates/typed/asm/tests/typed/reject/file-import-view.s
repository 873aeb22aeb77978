# expect: import 0: a field is out of range
# The number of the import does not say that it returns a view.
# patch: 64 06
.import packet 1 () -> any
.func f (any)
        .return
