//! Where the parts of an image lie.

use kyozon_typed_checker::program::{ALIGN, STUB};

/// General registers, each of which has a thunk.
const REGISTERS: u64 = 16;

/// Distances from the image's start: text, read-only data, call tables, and stubs of imports and thunks.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Start of the read-only data.
    pub read_only: u64,
    /// Start of the call tables.
    pub call_tables: u64,
    stubs: u64,
    imports: u64,
}

impl Layout {
    /// For so many bytes of text and read-only data, entries of call tables, and imports.
    pub fn new(text: usize, read_only: usize, entries: usize, imports: usize) -> Layout {
        let align = |n: u64| n.next_multiple_of(u64::from(ALIGN));
        let start = align(text as u64);
        let call_tables = align(start + read_only as u64);
        let stubs = align(call_tables + 8 * entries as u64);
        Layout { read_only: start, call_tables, stubs, imports: imports as u64 }
    }

    fn stub(&self, n: u64) -> u64 {
        self.stubs + n * u64::from(STUB)
    }

    /// The n-th import.
    pub fn import(&self, n: usize) -> u64 {
        self.stub(n as u64)
    }

    /// The thunk for indirect branches by a register.
    pub fn thunk(&self, register: u8) -> u64 {
        self.stub(self.imports + u64::from(register))
    }

    /// The thunk for returns.
    pub fn return_thunk(&self) -> u64 {
        self.stub(self.imports + REGISTERS)
    }
}
