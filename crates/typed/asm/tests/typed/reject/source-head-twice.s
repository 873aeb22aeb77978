# expect: two types for rax
# One place has one type.
.func f ()
.head rax: any, rax: u32
        .return
