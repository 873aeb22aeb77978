# expect: :3: bit 15 of an import
# The number says that the import returns a view.
.import packet 0x8001 () -> any
.func f ()
        .return
