;; A loop in which a constant decides a br_table: in the rounds that look for the annotations of its heads, nothing
;; flows into loops that were reached before. What those heads then said must not weaken the others.
(module
  (type (func (param i32 i32 i64) (result i64)))
  (memory 1 4)
  (func (type 0) (param i32 i32 i64) (result i64)
    (local i32 i32 i64 i32 i32 i32 i32 i32 f32 i32 i32 i32 i64 i32 i64 i32 i32 i32 i32 i64 i64)
    local.get 0
    i32.const 3
    i32.mul
    local.tee 3
    local.get 1
    i32.const 1280
    i32.add
    f32.load
    i32.trunc_sat_f32_u
    i32.const 31
    i32.and
    i32.const 1
    i32.shl
    i32.const 0
    i32.add
    i32.load16_s
    local.tee 4
    local.get 3
    local.get 4
    i32.lt_s
    select
    i32.const 1
    i32.load8_u
    i32.add
    i64.extend_i32_u
    local.get 0
    i64.extend_i32_u
    i64.mul
    i64.const 32
    i64.shr_u
    local.get 2
    i64.add
    local.set 5
    i32.const 1
    local.set 6
    block
      loop
        i32.const 0
        i32.const 750475278
        i32.store offset=2656
        local.get 4
        i32.eqz
        br_if 1
        block
          local.get 1
          i32.const 3
          i32.shl
          i32.const 1792
          i32.add
          i64.load
          local.tee 2
          i64.const 0
          local.get 2
          i64.const 1035354070
          i64.lt_s
          select
          local.get 1
          i64.extend_i32_u
          i64.and
          i64.eqz
          br_if 0
          local.get 6
          f32.const 0x1.2b81d8p+84
          local.get 7
          f32.load
          f32.add
          f32.store
        end
        block
          block
            block
              block
                block
                  block
                    block
                      block
                        local.get 6
                        i32.const 15
                        i32.and
                        i32.const -1
                        i32.add
                        br_table 0 1 2 3 4 5 6 7
                      end
                      i32.const 2655
                      local.set 7
                      loop
                        local.get 4
                        local.get 4
                        i32.store16
                        local.get 7
                        i32.const -1
                        i32.add
                        local.set 7
                        local.get 4
                        i32.const 2
                        i32.add
                        local.tee 4
                        br_if 0
                        br 7
                      end
                    end
                    local.get 6
                    local.get 1
                    i32.add
                    i32.const 794476826
                    i32.add
                    local.set 1
                    br 5
                  end
                  local.get 6
                  i64.const 0
                  i64.const 1
                  i64.rem_u
                  i32.wrap_i64
                  i32.and
                  i32.const 0
                  local.get 0
                  i32.const 16
                  i32.eq
                  select
                  local.set 3
                  br 4
                end
                i32.const 0
                local.set 7
                loop
                  local.get 4
                  i32.const 0
                  i32.add
                  local.get 7
                  i32.store8
                  local.get 4
                  i32.const 1
                  i32.add
                  local.tee 8
                  local.get 4
                  i32.lt_u
                  local.set 9
                  local.get 8
                  local.set 4
                  local.get 9
                  i32.eqz
                  br_if 0
                  br 4
                end
              end
              local.get 4
              i32.const 501
              i32.lt_s
              br_if 2
              i32.const 0
              local.set 0
              br 2
            end
            local.get 0
            local.tee 4
            i32.const 0
            local.get 4
            local.get 6
            i32.gt_s
            select
            local.set 7
            i32.const 1024
            local.set 4
            loop
              local.get 4
              local.get 4
              i32.load8_u
              local.get 7
              i32.add
              local.tee 7
              i32.store8
              local.get 4
              i32.const 1
              i32.add
              local.tee 4
              i32.const 1273
              i32.lt_u
              br_if 0
            end
            local.get 1
            local.get 7
            i32.add
            local.set 1
            br 1
          end
          local.get 6
          i32.const 63488
          i32.and
          i32.const 11
          i32.shr_u
          local.set 7
          loop
            local.get 4
            local.get 4
            i32.store8
            local.get 4
            i32.const 1273
            i32.lt_u
            br_if 0
          end
          local.get 5
          local.set 5
        end
        i32.const 2624
        local.set 4
        i32.const -60
        local.set 7
        loop
          block
            local.get 5
            local.get 7
            local.tee 8
            i64.extend_i32_u
            i64.extend16_s
            i64.ge_s
            br_if 0
            local.get 4
            i32.load8_u
            local.set 8
          end
          local.get 4
          local.get 8
          i32.store8
          local.get 4
          i32.const 1
          i32.add
          local.set 4
          local.get 7
          i32.const 2
          i32.add
          local.tee 7
          br_if 0
        end
        local.get 6
        i32.const 50
        i32.lt_u
        local.set 4
        i32.const 2
        local.set 6
        local.get 4
        br_if 0
      end
    end
    block
      block
        local.get 1
        i32.const 63
        i32.and
        local.tee 10
        br_if 0
        i64.const 0
        local.set 2
        br 1
      end
      i32.const 0
      i32.const 3
      local.get 11
      f32.const 0x1.e848p+19
      f32.lt
      select
      i32.const 3
      local.get 11
      f32.const -0x1.e848p+19
      f32.gt
      select
      local.set 7
      i32.const 0
      i32.load16_u offset=2314
      i32.eqz
      local.tee 4
      i32.const 0
      i32.load offset=1792
      i32.const 27
      i32.rotl
      local.tee 8
      local.get 8
      local.get 4
      i32.gt_u
      select
      local.set 12
      local.get 0
      i32.const 63
      i32.and
      i32.const 2
      i32.shl
      i32.const 2368
      i32.add
      local.set 13
      local.get 0
      i32.const 31
      i32.and
      i32.const 1
      i32.shl
      i32.const 2304
      i32.add
      local.set 14
      i32.const 0
      i32.load offset=2448
      local.set 16
      block
        loop
          block
            local.get 18
            br_if 0
            local.get 4
            local.set 18
            br 2
          end
          block
            block
              block
                block
                  local.get 10
                  i32.const -1
                  i32.add
                  local.tee 19
                  local.get 19
                  f32.load
                  local.tee 11
                  i32.trunc_sat_f32_s
                  i32.const 3
                  local.get 11
                  f32.const 0x1.e848p+19
                  f32.lt
                  select
                  i32.const 3
                  local.get 11
                  f32.const -0x1.e848p+19
                  f32.gt
                  select
                  i32.sub
                  i32.const 66
                  i32.eq
                  br_if 0
                  i32.const 0
                  local.set 6
                  local.get 18
                  local.tee 18
                  i32.eqz
                  br_if 2
                  local.get 3
                  i32.const 127
                  i32.and
                  i32.const 1024
                  i32.add
                  local.set 20
                  i64.const 4514217265038403518
                  local.set 2
                  i32.const 0
                  local.set 21
                  br 1
                end
                block
                  local.get 18
                  i32.const -2
                  i32.add
                  local.tee 18
                  i32.eqz
                  br_if 0
                  i32.const 1
                  local.set 8
                  local.get 17
                  local.set 22
                  i64.const 0
                  local.set 23
                  loop
                    i32.const 2
                    local.set 4
                    loop
                      local.get 7
                      i32.const 0
                      local.get 7
                      i32.const 0
                      i32.const -1137342448
                      i32.add
                      i32.gt_s
                      select
                      i64.extend_i32_s
                      local.set 2
                      local.get 4
                      i32.const 15
                      i32.lt_u
                      br_if 0
                    end
                    local.get 5
                    local.get 23
                    i64.sub
                    local.get 22
                    i64.add
                    local.set 5
                    i32.const 0
                    local.set 3
                    local.get 8
                    br_if 1
                    local.get 18
                    i32.const -1
                    i32.add
                    local.tee 18
                    br_if 0
                  end
                end
                local.get 0
                local.get 4
                i32.load8_u
                local.get 10
                local.get 10
                i32.add
                i64.extend_i32_u
                i64.const 7653348768577579826
                i64.const 1023
                i64.and
                i64.const 3
                i64.add
                i64.rem_u
                local.get 4
                i32.const 2
                i32.shl
                i32.const 2368
                i32.add
                i32.load
                local.get 3
                i32.load8_u
                i32.or
                local.get 19
                i32.add
                i32.const 31
                i32.and
                i64.extend_i32_u
                i64.shr_u
                i32.wrap_i64
                i32.add
                i32.store8
                br 2
              end
              loop
                i32.const -32
                local.set 4
                block
                  block
                    local.get 20
                    local.get 0
                    local.get 6
                    memory.fill
                    local.get 4
                    i32.const 1
                    i32.add
                    local.tee 8
                    local.get 4
                    i32.lt_u
                    local.set 9
                    local.get 8
                    local.set 4
                    local.get 9
                    i32.eqz
                    br_if 0
                    br 1
                  end
                  loop
                    local.get 20
                    local.get 0
                    local.get 6
                    memory.fill
                    local.get 4
                    i32.const 1
                    i32.add
                    local.tee 8
                    local.get 4
                    i32.lt_u
                    local.set 9
                    local.get 8
                    local.set 4
                    local.get 9
                    i32.eqz
                    br_if 0
                  end
                end
                local.get 21
                i32.const 1
                i32.add
                local.tee 21
                i32.const 40
                i32.eq
                br_if 1
                local.get 18
                local.tee 18
                br_if 0
              end
            end
            local.get 19
            i32.const 1024
            i32.add
            local.get 14
            i32.load16_u
            local.get 6
            i32.const 1
            i32.shl
            i32.const 2304
            i32.add
            i32.load16_u
            i32.add
            i64.extend_i32_u
            i64.extend16_s
            i64.const 4294967295
            i64.and
            i32.const -1950226063
            local.get 1
            i32.shr_u
            i32.const 26640861
            i32.add
            i64.extend_i32_u
            i64.mul
            i64.const 32
            i64.shr_u
            i64.store8
          end
          local.get 10
          local.get 5
          i64.const -8076211656190927274
          local.get 22
          local.get 23
          i64.lt_s
          select
          i32.wrap_i64
          i32.sub
          local.get 1
          i32.xor
          local.set 1
          local.get 19
          local.set 10
          local.get 4
          br_if 0
        end
      end
      i32.const 0
      local.get 18
      i32.store offset=2656
    end
    local.get 0
    i32.const 2624
    i32.add
    local.get 1
    f32.const -0x1.50a14ap-120
    local.tee 11
    i32.trunc_sat_f32_s
    i32.const 255
    i32.and
    i32.const 1
    i32.add
    i32.const 4
    i32.const -1772522246
    select
    i32.const 4
    local.get 11
    f32.const -0x1.e848p+19
    f32.gt
    select
    local.get 4
    i32.gt_u
    i32.or
    i32.store8
    local.get 1
    i32.const 31
    i32.and
    i32.const 7
    i32.add
    local.set 7
    local.get 2
    i64.extend8_s
    local.set 22
    i32.const 0
    i32.load offset=2656
    local.set 6
    i64.const 2
    local.set 23
    block
      loop
        local.get 6
        i32.const -1
        i32.add
        local.tee 6
        i32.eqz
        br_if 1
        block
          local.get 23
          i32.wrap_i64
          local.tee 9
          i32.const 62
          i32.and
          local.tee 4
          local.get 7
          i32.ge_u
          br_if 0
          local.get 3
          local.set 20
          loop
            local.get 5
            local.set 5
            local.get 4
            local.get 7
            i32.lt_u
            br_if 0
          end
          local.get 8
          local.get 8
          i32.store8
        end
        i32.const 0
        i32.const 1
        i32.shl
        i32.const 2304
        i32.add
        local.tee 8
        local.get 8
        local.get 0
        local.get 9
        i32.sub
        i32.const 127
        i32.and
        i32.const 2
        i32.shl
        i32.const 1280
        i32.add
        f32.load
        local.tee 11
        i32.trunc_sat_f32_s
        i32.const 3
        i32.const -48923995
        select
        i32.const 3
        local.get 11
        f32.const -0x1.e848p+19
        f32.gt
        select
        local.get 9
        i32.const 1
        i32.shl
        local.tee 8
        i32.const 2368
        i32.add
        i32.load
        i32.add
        i32.const 572104603
        local.get 4
        i32.const 255
        i32.and
        i32.const 1024
        i32.add
        i32.load8_u
        i32.shr_u
        local.get 8
        i32.const 3
        local.get 11
        f32.const 0x1.e848p+19
        f32.lt
        select
        i32.const 3
        local.get 11
        f32.const -0x1.e848p+19
        f32.gt
        select
        i32.and
        i32.const 0
        i32.and
        i32.const 1
        i32.add
        i32.div_u
        i32.sub
        i32.store16
        local.get 23
        i64.const 30
        i64.lt_u
        local.set 4
        local.get 23
        i64.const 2
        i64.add
        local.set 23
        local.get 4
        br_if 0
      end
    end
    i32.const 0
    local.get 6
    i32.store offset=2656
    local.get 2
    local.get 0
    i64.extend_i32_s
    i64.eq
    local.set 7
    i32.const 2368
    local.set 4
    loop
      local.get 4
      local.get 4
      i32.store
      local.get 4
      i32.const 4
      i32.add
      local.tee 4
      i32.const 2612
      i32.lt_u
      br_if 0
    end
    local.get 2
    local.get 5
    i64.add
    local.get 3
    i64.extend_i32_s
    i64.add
    local.get 7
    i64.extend_i32_u
    i64.add
  )
  (func (export "compiled") (result i32) i32.const 1))
(assert_return (invoke "compiled") (i32.const 1))
