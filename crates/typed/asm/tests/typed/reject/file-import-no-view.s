# expect: import 0: a field is out of range
# The number of the import says that it returns a view.
# patch: 64 01
.import packet 0x8001 () -> view
.func f (any)
        .return
