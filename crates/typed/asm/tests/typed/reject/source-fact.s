# expect: source-fact.s:4: .fact is reserved
# A word for a later version.
.func f ()
        .fact   rdi < rsi
        .return
