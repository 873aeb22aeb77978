;; Loops in loops whose ranges take turns in growing: each round that looks for the annotations of their heads widens
;; one of them a little.
(module
  (type (func (param i32 i32 i64) (result i64)))
  (type (func))
  (memory 1 4)
  (func (type 0) (param i32 i32 i64) (result i64)
    (local i32 i32 i32 i32 i32 i32 i32 i32)
    i32.const 0
    i32.load8_u offset=1252
    local.get 1
    i32.const 127
    i32.and
    i32.const 1312
    i32.add
    i32.load8_s
    i32.add
    local.get 1
    local.get 2
    i32.wrap_i64
    i32.const 127
    i32.and
    i32.const 1312
    i32.add
    i32.load8_u
    i32.const 1
    i32.add
    i32.div_u
    i32.sub
    i32.const 0
    i64.load8_s offset=1437
    i64.const -50883
    i64.add
    local.get 1
    local.get 0
    i32.add
    i32.const 31
    i32.and
    i64.extend_i32_u
    i64.shr_u
    i32.wrap_i64
    i32.const 31
    i32.and
    i32.const 2
    i32.add
    i32.div_s
    local.get 0
    i32.add
    local.tee 3
    i32.const 127
    i32.and
    local.tee 4
    i32.const 1060
    i32.add
    i32.load8_u
    local.set 5
    local.get 0
    i32.const 3
    i32.mul
    local.tee 6
    i32.const 127
    i32.and
    local.tee 0
    i32.const 1056
    i32.add
    local.get 4
    i32.const 1056
    i32.add
    i32.load align=1
    i32.store align=1
    local.get 0
    i32.const 1060
    i32.add
    local.get 5
    i32.store8
    block
      block
        i32.const 0
        i32.load offset=1440
        local.tee 0
        i32.const 1
        i32.ne
        br_if 0
        i32.const 0
        local.set 7
        br 1
      end
      i64.const 0
      i64.const -134217728
      i32.const 0
      i32.load8_u offset=1316
      select
      local.get 2
      i64.xor
      local.set 2
      block
        local.get 0
        i32.const -2
        i32.add
        local.tee 7
        br_if 0
        i32.const 0
        local.set 7
        br 1
      end
      i64.const 0
      i64.const -134217728
      i32.const 0
      i32.load8_u offset=1320
      select
      local.get 2
      i64.xor
      local.set 2
    end
    i32.const 0
    local.get 7
    i32.store offset=1440
    block
      local.get 6
      i32.const 63
      i32.and
      local.tee 8
      i32.eqz
      br_if 0
      block
        block
          local.get 7
          i32.const -1
          i32.add
          local.tee 9
          br_if 0
          i32.const 0
          local.set 9
          br 1
        end
        i32.const 0
        i32.load8_u offset=1149
        local.get 2
        i32.wrap_i64
        local.tee 10
        i32.add
        local.set 4
        i32.const 1056
        local.set 0
        loop
          local.get 0
          local.get 4
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 4
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1304
          i32.lt_u
          br_if 0
        end
        local.get 4
        i32.const 255
        i32.and
        local.set 5
        i32.const 0
        local.set 0
        local.get 8
        local.set 4
        loop
          local.get 0
          local.get 4
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 4
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1309
          i32.lt_u
          br_if 0
        end
        local.get 3
        local.get 4
        i32.const 255
        i32.and
        i32.add
        local.set 3
        local.get 8
        i32.const 9
        i32.lt_u
        br_if 0
        block
          local.get 7
          i32.const -2
          i32.add
          local.tee 9
          br_if 0
          i32.const 0
          local.set 9
          br 1
        end
        i32.const 0
        i32.load8_u offset=1149
        local.get 10
        i32.add
        local.set 4
        i32.const 1056
        local.set 0
        loop
          local.get 0
          local.get 4
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 4
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1304
          i32.lt_u
          br_if 0
        end
        local.get 8
        i32.const -8
        i32.add
        local.set 5
        local.get 4
        i32.const 255
        i32.and
        local.set 4
        i32.const 1061
        local.set 0
        loop
          local.get 0
          local.get 5
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 5
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1309
          i32.lt_u
          br_if 0
        end
        local.get 1
        local.get 4
        i32.add
        local.set 1
        local.get 3
        local.get 5
        i32.const 255
        i32.and
        i32.add
        local.set 3
        local.get 8
        i32.const 17
        i32.lt_u
        br_if 0
        block
          local.get 7
          i32.const -3
          i32.add
          local.tee 9
          br_if 0
          i32.const 0
          local.set 9
          br 1
        end
        i32.const 0
        i32.load8_u offset=1149
        local.get 10
        i32.add
        local.set 4
        i32.const 1056
        local.set 0
        loop
          local.get 0
          local.get 4
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 4
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1304
          i32.lt_u
          br_if 0
        end
        local.get 8
        i32.const -16
        i32.add
        local.set 5
        local.get 4
        i32.const 255
        i32.and
        local.set 4
        i32.const 1061
        local.set 0
        loop
          local.get 0
          local.get 5
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 5
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1309
          i32.lt_u
          br_if 0
        end
        local.get 3
        local.get 5
        i32.const 255
        i32.and
        i32.add
        local.set 3
        local.get 8
        i32.const 25
        i32.lt_u
        br_if 0
        block
          local.get 7
          i32.const -4
          i32.add
          local.tee 9
          br_if 0
          i32.const 0
          local.set 9
          br 1
        end
        i32.const 0
        i32.load8_u offset=1149
        local.get 10
        i32.add
        local.set 4
        i32.const 1056
        local.set 0
        loop
          local.get 0
          local.get 4
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 4
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1304
          i32.lt_u
          br_if 0
        end
        local.get 8
        i32.const -24
        i32.add
        local.set 5
        local.get 4
        i32.const 255
        i32.and
        local.set 4
        i32.const 1061
        local.set 0
        loop
          local.get 0
          local.get 5
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 5
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1309
          i32.lt_u
          br_if 0
        end
        local.get 1
        local.get 4
        i32.add
        local.set 1
        local.get 3
        local.get 5
        i32.const 255
        i32.and
        i32.add
        local.set 3
        local.get 8
        i32.const 33
        i32.lt_u
        br_if 0
        block
          local.get 7
          i32.const -5
          i32.add
          local.tee 9
          br_if 0
          i32.const 0
          local.set 9
          br 1
        end
        i32.const 0
        i32.load8_u offset=1149
        local.get 10
        i32.add
        local.set 4
        i32.const 1
        local.set 0
        loop
          local.get 0
          local.get 4
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 4
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1304
          i32.lt_u
          br_if 0
        end
        local.get 8
        i32.const -32
        i32.add
        local.set 5
        local.get 4
        i32.const 255
        i32.and
        local.set 4
        i32.const 1
        local.set 0
        loop
          local.get 0
          local.get 5
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 5
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1309
          i32.lt_u
          br_if 0
        end
        local.get 1
        local.get 4
        i32.add
        local.set 1
        local.get 3
        local.get 5
        i32.const 255
        i32.and
        i32.add
        local.set 3
        local.get 8
        i32.const 41
        i32.lt_u
        br_if 0
        block
          local.get 7
          i32.const -6
          i32.add
          local.tee 9
          br_if 0
          i32.const 0
          local.set 9
          br 1
        end
        i32.const 0
        i32.load8_u offset=1149
        local.get 10
        i32.add
        local.set 4
        i32.const 1056
        local.set 0
        loop
          local.get 0
          local.get 4
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 4
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1304
          i32.lt_u
          br_if 0
        end
        local.get 4
        i32.const 255
        i32.and
        local.set 4
        i32.const 1061
        local.set 0
        loop
          local.get 0
          local.get 5
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 5
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1309
          i32.lt_u
          br_if 0
        end
        local.get 1
        local.get 4
        i32.add
        local.set 1
        local.get 3
        local.get 5
        i32.const 255
        i32.and
        i32.add
        local.set 3
        local.get 8
        i32.const 49
        i32.lt_u
        br_if 0
        block
          local.get 7
          i32.const -7
          i32.add
          local.tee 9
          br_if 0
          i32.const 0
          local.set 9
          br 1
        end
        i32.const 0
        i32.load8_u offset=1149
        local.get 10
        i32.add
        local.set 4
        i32.const 1056
        local.set 0
        loop
          local.get 0
          local.get 4
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 4
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1304
          i32.lt_u
          br_if 0
        end
        local.get 8
        i32.const -48
        i32.add
        local.set 5
        local.get 4
        i32.const 255
        i32.and
        local.set 4
        i32.const 1061
        local.set 0
        loop
          local.get 0
          local.get 5
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 5
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1309
          i32.lt_u
          br_if 0
        end
        local.get 1
        local.get 4
        i32.add
        local.set 1
        local.get 3
        local.get 5
        i32.const 255
        i32.and
        i32.add
        local.set 3
        i32.const 0
        br_if 0
        block
          local.get 7
          i32.const -8
          i32.add
          local.tee 9
          br_if 0
          i32.const 0
          local.set 9
          br 1
        end
        i32.const 0
        i32.load8_u offset=1149
        local.get 10
        i32.add
        local.set 4
        i32.const 1056
        local.set 0
        loop
          local.get 0
          local.get 4
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 4
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1304
          i32.lt_u
          br_if 0
        end
        local.get 4
        i32.const 255
        i32.and
        local.set 4
        i32.const 1061
        local.set 0
        loop
          local.get 0
          local.get 5
          local.get 0
          i32.load8_u
          i32.sub
          local.tee 5
          i32.store8
          local.get 0
          i32.const 1
          i32.add
          local.tee 0
          i32.const 1309
          i32.lt_u
          br_if 0
        end
        local.get 1
        local.get 4
        i32.add
        local.set 1
        local.get 3
        local.get 5
        i32.const 255
        i32.and
        i32.add
        local.set 3
      end
      i32.const 0
      local.get 9
      i32.store offset=1440
    end
    local.get 3
    i32.const 127
    i32.and
    i32.const 1312
    i32.add
    i32.load8_u
    i32.const 1056
    i32.add
    local.tee 0
    local.get 0
    i32.load8_u
    local.get 6
    i32.const 255
    i32.and
    i32.const 1056
    i32.add
    i32.load8_u
    local.tee 0
    local.get 0
    local.get 2
    i32.wrap_i64
    i32.const 1023
    i32.and
    i32.const 3
    i32.add
    i32.rem_u
    i32.add
    i32.const 85
    i32.add
    local.get 3
    i32.const 24
    i32.add
    i32.const 1
    i32.eqz
    i32.or
    i32.or
    i32.sub
    i32.store8
    local.get 6
    i64.extend_i32_s
    local.get 2
    i64.add
    local.get 3
    local.get 1
    i32.add
    i64.extend_i32_u
    i64.add
    i64.const 381
    i64.add
  )
  (func (export "compiled") (result i32) i32.const 1))
(assert_return (invoke "compiled") (i32.const 1))
