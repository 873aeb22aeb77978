# expect: :3: only an import returns a view
# A function cannot give a view to its caller.
.func f () -> view
        .return
