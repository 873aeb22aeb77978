# expect: import 0: a field is out of range
# The number of the import does not say that the view is writable.
# patch: 64 07
.import packet 0x8001 () -> view
.func f (any)
        .return
