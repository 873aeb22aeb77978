# A return of the program's own.
.indirect
.func f ()
        .return
