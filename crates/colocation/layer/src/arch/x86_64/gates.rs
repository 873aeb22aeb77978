//! The gates of the cokernel's world. The trampoline made the table, and keeps the gates of NMI and machine check.

const NMI: usize = 2;
const BREAKPOINT: usize = 3;
const DOUBLE_FAULT: usize = 8;
const MACHINE_CHECK: usize = 18;
const EXCEPTIONS: usize = 32;
const SYSTEM_CALL: usize = 0x80;

const STUB_BYTES: u64 = 16;
const KERNEL_CODE: u64 = 0x10;
const PRESENT_INTERRUPT_GATE: u64 = 0x8e00;
/// The same, for user mode's `int`.
const USER_GATE: u64 = 0xee00;
/// Linux's number for the stack of double faults, which is the trampoline's too.
const DOUBLE_FAULT_STACK: u64 = 1;

extern "C" {
    fn layer_stubs();
    /// The layer's code behind the gate of vector 2.
    pub fn layer_nmi();
    /// The layer's code behind the gate of vector 18.
    pub fn layer_machine_check();
}

fn gate(stub: usize, kind: u64, stack: u64) -> [u64; 2] {
    let at = layer_stubs as *const () as u64 + stub as u64 * STUB_BYTES;
    [
        at & 0xffff | KERNEL_CODE << 16 | stack << 32 | kind << 32 | (at >> 16 & 0xffff) << 48,
        at >> 32,
    ]
}

/// Fills the layer's gates.
///
/// # Safety
///
/// `table` must be the live interrupt descriptor table of 256 gates.
pub unsafe fn fill(table: *mut [u64; 2]) {
    let set = |vector: usize, stub: usize, kind: u64, stack: u64| {
        // SAFETY: the vector is below 256.
        unsafe { table.add(vector).write_volatile(gate(stub, kind, stack)) };
    };
    for vector in (0..EXCEPTIONS).filter(|v| ![NMI, MACHINE_CHECK].contains(v)) {
        let stack = if vector == DOUBLE_FAULT { DOUBLE_FAULT_STACK } else { 0 };
        let kind = if vector == BREAKPOINT { USER_GATE } else { PRESENT_INTERRUPT_GATE };
        set(vector, vector, kind, stack);
    }
    set(SYSTEM_CALL, EXCEPTIONS, USER_GATE, 0);
}
