;; gcc counts the bits of a half by popcnt with 16 bits, which the checker does not have.
(module
  (memory 1)
  (data (i32.const 0) "\ff\f0\01\80\01\00\00\80")
  (func (export "memory32") (param i32) (result i32) (i32.popcnt (i32.load16_u (local.get 0))))
  (func (export "memory64") (param i32) (result i64) (i64.popcnt (i64.load16_u (local.get 0))))
  (func (export "value") (param i32) (result i32)
    (i32.popcnt (i32.and (local.get 0) (i32.const 0xffff)))))
(assert_return (invoke "memory32" (i32.const 0)) (i32.const 12))
(assert_return (invoke "memory64" (i32.const 2)) (i64.const 2))
(assert_return (invoke "value" (i32.const 0x7fff00ff)) (i32.const 8))
