# expect: source-view.s:4: .view is reserved
# A word for a later version.
.func f ()
        .view   v u8
        .return
