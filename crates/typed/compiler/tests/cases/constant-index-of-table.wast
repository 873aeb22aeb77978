;; Entries at constant indices that no displacement reaches, so that gcc loads them by 64-bit addresses.
(module
  (table $t 4 8 funcref)
  (type $f (func))
  (elem declare func $nothing)
  (func $nothing)
  (func (export "get") (result i32) (ref.is_null (table.get $t (i32.const -268435457))))
  (func (export "set") (table.set $t (i32.const -268435457) (ref.func $nothing)))
  (func (export "call") (call_indirect $t (type $f) (i32.const 0x7fffffff))))
(assert_trap (invoke "get") "out of bounds table access")
(assert_trap (invoke "set") "out of bounds table access")
(assert_trap (invoke "call") "undefined element")
