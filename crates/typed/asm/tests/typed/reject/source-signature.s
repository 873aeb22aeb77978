# expect: source-signature.s:3: signature `s` is not declared
# Signatures are declared before they are used.
.func f s
        .return
