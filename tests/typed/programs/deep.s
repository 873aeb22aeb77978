# Calls itself until its stack ends: how often.
.func main () -> any frame 1016
        sub     $1016, %rsp
        xor     %eax, %eax
        cmp     $0x5000, %sp
        jb      out
        call    main
        inc     %eax
out:    add     $1016, %rsp
        .return
