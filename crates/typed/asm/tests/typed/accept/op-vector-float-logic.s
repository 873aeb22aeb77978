# Logic, shuffles and comparisons of floating-point numbers.
.func f (any, any)
        andps   %xmm0, %xmm1
        andnpd  %xmm0, %xmm1
        orps    %xmm0, %xmm1
        xorps   %xmm1, %xmm1
        shufps  $1, %xmm0, %xmm1
        shufpd  $1, %xmm0, %xmm1
        unpcklps %xmm0, %xmm1
        unpckhpd %xmm0, %xmm1
        cmpltps %xmm0, %xmm1
        cmpltsd %xmm0, %xmm1
        haddps  %xmm0, %xmm1
        rcpps   %xmm0, %xmm1
        rsqrtss %xmm0, %xmm1
        roundsd $1, %xmm0, %xmm1
        roundps $1, %xmm0, %xmm1
        blendps $1, %xmm0, %xmm1
        dpps    $1, %xmm0, %xmm1
        .return
