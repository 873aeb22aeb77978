# expect: expected flags that stem from data
# From above come flags of an address.
.func f (any) -> any frame 8
        sub     $8, %rsp
.head flags
same:   setae   %al
        movzbl  %al, %eax
        add     $8, %rsp
        .return
