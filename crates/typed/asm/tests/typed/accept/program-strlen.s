# Length of a string in the region.
.func strlen (u32) -> any
        xor     %eax, %eax
        jmp     test
.head rax: u32
more:   inc     %eax
test:   cmpb    $0, 0x10000000(%rdi,%rax)
        jne     more
        .return
