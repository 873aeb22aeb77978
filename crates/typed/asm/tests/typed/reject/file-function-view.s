# expect: function 0: a field is out of range
# A function does not return a view.
# patch: 64 06
.func f () -> any
        xor     %eax, %eax
        .return
