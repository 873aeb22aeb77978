# expect: entry 0: a field is out of range
# A host calls the entry with arguments in registers only.
.func f (any; stack 1)
        .return
