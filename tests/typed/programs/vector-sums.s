# Adds 1.0 two million times to 30 doubles, which begin at the process's id and 1, 2 and so on more: 1 if all sums are
# exact. Other programs' sums are other numbers.
.import getpid 39 () -> any
.func main () -> any frame 16
        push    %rbx
        sub     $8, %rsp
        xor     %eax, %eax
        cmp     $0x5000, %sp
        jb      out
        call    getpid
        mov     %rax, %rbx
        mov     $1, %eax
        cvtsi2sd %eax, %xmm15
        unpcklpd %xmm15, %xmm15
        cvtsi2sd %rbx, %xmm0
        unpcklpd %xmm0, %xmm0
        movapd  %xmm0, %xmm1
        addpd   %xmm15, %xmm1
        movapd  %xmm1, %xmm2
        addpd   %xmm15, %xmm2
        movapd  %xmm2, %xmm3
        addpd   %xmm15, %xmm3
        movapd  %xmm3, %xmm4
        addpd   %xmm15, %xmm4
        movapd  %xmm4, %xmm5
        addpd   %xmm15, %xmm5
        movapd  %xmm5, %xmm6
        addpd   %xmm15, %xmm6
        movapd  %xmm6, %xmm7
        addpd   %xmm15, %xmm7
        movapd  %xmm7, %xmm8
        addpd   %xmm15, %xmm8
        movapd  %xmm8, %xmm9
        addpd   %xmm15, %xmm9
        movapd  %xmm9, %xmm10
        addpd   %xmm15, %xmm10
        movapd  %xmm10, %xmm11
        addpd   %xmm15, %xmm11
        movapd  %xmm11, %xmm12
        addpd   %xmm15, %xmm12
        movapd  %xmm12, %xmm13
        addpd   %xmm15, %xmm13
        movapd  %xmm13, %xmm14
        addpd   %xmm15, %xmm14
        mov     $2000000, %eax
.head rax: any
again:  addpd   %xmm15, %xmm0
        addpd   %xmm15, %xmm1
        addpd   %xmm15, %xmm2
        addpd   %xmm15, %xmm3
        addpd   %xmm15, %xmm4
        addpd   %xmm15, %xmm5
        addpd   %xmm15, %xmm6
        addpd   %xmm15, %xmm7
        addpd   %xmm15, %xmm8
        addpd   %xmm15, %xmm9
        addpd   %xmm15, %xmm10
        addpd   %xmm15, %xmm11
        addpd   %xmm15, %xmm12
        addpd   %xmm15, %xmm13
        addpd   %xmm15, %xmm14
        dec     %rax
        jne     again
        subpd   %xmm13, %xmm14
        cmpeqpd %xmm15, %xmm14
        subpd   %xmm12, %xmm13
        cmpeqpd %xmm15, %xmm13
        andpd   %xmm13, %xmm14
        subpd   %xmm11, %xmm12
        cmpeqpd %xmm15, %xmm12
        andpd   %xmm12, %xmm14
        subpd   %xmm10, %xmm11
        cmpeqpd %xmm15, %xmm11
        andpd   %xmm11, %xmm14
        subpd   %xmm9, %xmm10
        cmpeqpd %xmm15, %xmm10
        andpd   %xmm10, %xmm14
        subpd   %xmm8, %xmm9
        cmpeqpd %xmm15, %xmm9
        andpd   %xmm9, %xmm14
        subpd   %xmm7, %xmm8
        cmpeqpd %xmm15, %xmm8
        andpd   %xmm8, %xmm14
        subpd   %xmm6, %xmm7
        cmpeqpd %xmm15, %xmm7
        andpd   %xmm7, %xmm14
        subpd   %xmm5, %xmm6
        cmpeqpd %xmm15, %xmm6
        andpd   %xmm6, %xmm14
        subpd   %xmm4, %xmm5
        cmpeqpd %xmm15, %xmm5
        andpd   %xmm5, %xmm14
        subpd   %xmm3, %xmm4
        cmpeqpd %xmm15, %xmm4
        andpd   %xmm4, %xmm14
        subpd   %xmm2, %xmm3
        cmpeqpd %xmm15, %xmm3
        andpd   %xmm3, %xmm14
        subpd   %xmm1, %xmm2
        cmpeqpd %xmm15, %xmm2
        andpd   %xmm2, %xmm14
        subpd   %xmm0, %xmm1
        cmpeqpd %xmm15, %xmm1
        andpd   %xmm1, %xmm14
        lea     2000000(%rbx), %rax
        cvtsi2sd %rax, %xmm1
        unpcklpd %xmm1, %xmm1
        cmpeqpd %xmm1, %xmm0
        andpd   %xmm0, %xmm14
        mov     $1, %eax
        cvtsi2sd %eax, %xmm1
        unpcklpd %xmm1, %xmm1
        cmpeqpd %xmm1, %xmm15
        andpd   %xmm15, %xmm14
        movmskpd %xmm14, %ecx
        xor     %eax, %eax
        cmp     $3, %ecx
        sete    %al
out:    add     $8, %rsp
        pop     %rbx
        .return
