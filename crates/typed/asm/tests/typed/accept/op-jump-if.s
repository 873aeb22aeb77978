# A jump on each condition, short and long.
.func f (any, any)
        cmp     %rsi, %rdi
        jo      out
        jno     out
        jb      out
        jae     out
        je      out
        jne     out
        jbe     out
        ja      out
        js      out
        jns     out
        jp      out
        jnp     out
        jl      out
        jge     out
        jle     out
        {disp32} jg out
        ud2
out:    nop
        .return
