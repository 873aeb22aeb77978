# Vector registers are zero when a program starts, and after a call: 2 if both are so.
.import getpid 39 () -> any
.func main () -> any frame 16
        push    %rbx
        sub     $8, %rsp
        xor     %ebx, %ebx
        cmp     $0x5000, %sp
        jb      out
        por     %xmm1, %xmm0
        por     %xmm2, %xmm0
        por     %xmm3, %xmm0
        por     %xmm4, %xmm0
        por     %xmm5, %xmm0
        por     %xmm6, %xmm0
        por     %xmm7, %xmm0
        por     %xmm8, %xmm0
        por     %xmm9, %xmm0
        por     %xmm10, %xmm0
        por     %xmm11, %xmm0
        por     %xmm12, %xmm0
        por     %xmm13, %xmm0
        por     %xmm14, %xmm0
        por     %xmm15, %xmm0
        ptest   %xmm0, %xmm0
        jne     out
        inc     %ebx
        pcmpeqd %xmm0, %xmm0
        pcmpeqd %xmm1, %xmm1
        pcmpeqd %xmm2, %xmm2
        pcmpeqd %xmm3, %xmm3
        pcmpeqd %xmm4, %xmm4
        pcmpeqd %xmm5, %xmm5
        pcmpeqd %xmm6, %xmm6
        pcmpeqd %xmm7, %xmm7
        pcmpeqd %xmm8, %xmm8
        pcmpeqd %xmm9, %xmm9
        pcmpeqd %xmm10, %xmm10
        pcmpeqd %xmm11, %xmm11
        pcmpeqd %xmm12, %xmm12
        pcmpeqd %xmm13, %xmm13
        pcmpeqd %xmm14, %xmm14
        pcmpeqd %xmm15, %xmm15
        call    getpid
        por     %xmm1, %xmm0
        por     %xmm2, %xmm0
        por     %xmm3, %xmm0
        por     %xmm4, %xmm0
        por     %xmm5, %xmm0
        por     %xmm6, %xmm0
        por     %xmm7, %xmm0
        por     %xmm8, %xmm0
        por     %xmm9, %xmm0
        por     %xmm10, %xmm0
        por     %xmm11, %xmm0
        por     %xmm12, %xmm0
        por     %xmm13, %xmm0
        por     %xmm14, %xmm0
        por     %xmm15, %xmm0
        ptest   %xmm0, %xmm0
        jne     out
        inc     %ebx
out:    mov     %ebx, %eax
        add     $8, %rsp
        pop     %rbx
        .return
