# expect: expected the end of the line
# Nothing follows a directive.
.func f () deep 8
        .return
