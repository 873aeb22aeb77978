# expect: expected flags that stem from data
# The same with two bytes, and a count in cl that may be 31.
.func f (any, any)
        mov     %esi, %ecx
        or      $16, %ecx
        and     $31, %ecx
        lea     f(%rip), %rax
        add     %rdi, %rax
        shl     %cl, %di
        jc      out
out:    .return
