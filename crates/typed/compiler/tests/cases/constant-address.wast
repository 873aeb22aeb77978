;; Addresses beyond 2 GiB that are known when the program is compiled.
(module
  (memory 1)
  (func (export "load") (result i32) (i32.load (i32.const 0xfffffff0)))
  (func (export "load-offset") (result i32) (i32.load offset=0xf0000000 (i32.const 0x7ffffff0)))
  (func (export "store") (i64.store offset=0xf0000000 (i32.const 0xfffffff0) (i64.const 1))))
(assert_trap (invoke "load") "out of bounds memory access")
(assert_trap (invoke "load-offset") "out of bounds memory access")
(assert_trap (invoke "store") "out of bounds memory access")
