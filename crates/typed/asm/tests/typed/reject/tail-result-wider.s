# expect: tail call: expected a callee with this function.s result
# The callee returns more bits.
.func f () -> u32
        jmp     g
.func g () -> any
        xor     %eax, %eax
        .return
