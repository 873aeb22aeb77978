# An immediate of 64 bits is no distance: added to the instruction's offset it would overflow.
.func f () -> any
        movabs  $0x7fffffffffffffff, %rax
        .return
