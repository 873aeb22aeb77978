# expect: :3: bit 15 of an import
# The number says that the view is writable.
.import packet 0xc001 () -> view
.func f ()
        .return
