# expect: :3: bit 15 of an import
# The number does not say that the import returns a view.
.import packet 1 () -> view
.func f ()
        .return
