//! The file: header, signatures, functions, tables, imports, annotations, read-only data, text.
//!
//! All fields are little endian. The file holds no pointers and needs no relocation: its text refers to the rest of
//! the image by distances.
//!
//! ```text
//! offset  bytes  header
//!      0      8  "KYZTYPED"
//!      8      4  version: 1
//!     12      4  flags: bit 0, the text has indirect branches of its own (without, it calls the thunks)
//!     16      8  start of the region
//!     24      4  T, bytes of text
//!     28      4  R, bytes of read-only data
//!     32      4  number of signatures
//!     36      4  number of functions
//!     40      4  number of call tables
//!     44      4  number of jump tables
//!     48      4  number of imports
//!     52      4  number of entries of all call tables
//!     56      4  A, bytes of annotations
//!     60      4  entry: the function where the program starts
//!     64         signatures, 12 bytes each: result, number of arguments in registers, their 6 types, number of
//!                8-byte arguments on the stack, and 3 bytes with a bit for each of these whose upper four bytes are
//!                not data. Types: 0 none, 1 any, 2 u32, 3 u16, 4 u8; 5 for an argument that can be anything, but
//!                not of an import, whose code need not look at what it gets; 6 and 7 for the result of an import
//!                that returns a view, see below
//!                functions, 12 bytes each, in the order of the text: start in the text (4), start in the
//!                annotations (4), signature (2), deepest frame in units of 8 bytes (2)
//!                call tables, 8 bytes each: first of its entries (4), their number (2), signature (2)
//!                entries of call tables, 4 bytes each: function
//!                jump tables, 12 bytes each: start in the read-only data (4), number of entries (4), function (4)
//!                imports, 4 bytes each: number that the host knows it by (2), signature (2)
//!                annotations, A bytes: see `heads`
//!                read-only data, R bytes
//!                text, T bytes
//!                what follows is the runtime's own: contents of the region, names
//! ```
//!
//! The image in memory, each part at a multiple of 64 bytes from the image's start:
//!
//! ```text
//! text | read-only data | call tables, 8 bytes per entry | stubs, 16 bytes each
//! ```
//!
//! The loader fills in the call tables (addresses of functions) and the stubs. There is one stub for each import (a
//! jump to the host's gate), then one for each general register (a jump to the address in it, by the kernel's thunk if
//! it has one), then one that returns.
//!
//! An import whose number has bit 15 returns a view: the address of some memory in rax, and its length in rdx, at most
//! [`MOST_VIEW`](crate::value::MOST_VIEW) bytes. The memory stays accessible until the program ends, and an access does
//! not fault. With code 6 the program reads it, with bit 14 and code 7 it writes it too. Its contents may change at any
//! time. The file cannot make a view of what another import returns, because the number says which imports do.

use crate::bytes::{u16_at, u32_at};
use crate::insn::{Register, R8, R9, RCX, RDI, RDX, RSI};
use crate::range::Range;
use crate::value::{Spot, Value};

/// First bytes of a file.
pub const MAGIC: &[u8; 8] = b"KYZTYPED";
/// Version of the format.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER: usize = 64;
/// Bytes of a stub.
pub const STUB: u32 = 16;
/// Parts of the image start at multiples of this.
pub const ALIGN: u32 = 64;
/// Largest text, and largest read-only data. The pass numbers what registers hold with 32 bits.
pub const MOST_BYTES: u32 = 1 << 25;
/// Most functions, table entries, imports and so on.
pub const MOST_ITEMS: u32 = 1 << 20;
/// Deepest frame in bytes.
pub const MOST_FRAME: u32 = 16 << 10;
/// Most arguments on the stack.
pub const MOST_STACK_ARGUMENTS: u8 = 24;

/// The code of an argument that can be anything.
const UNKNOWN: u8 = 5;
/// The codes of a view as a result, which only imports have.
const VIEW: u8 = 6;
const WRITABLE_VIEW: u8 = 7;
/// Bits of an import's number: it returns a view, and the view may be written.
pub const RETURNS_VIEW: u16 = 0x8000;
/// See [`RETURNS_VIEW`].
pub const VIEW_IS_WRITABLE: u16 = 0x4000;
/// The registers of the first six arguments.
pub const ARGUMENTS: [Register; 6] = [RDI, RSI, RDX, RCX, R8, R9];

/// Why a file is refused before its text is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It does not begin with the magic.
    Magic,
    /// Its version is another.
    Version(u32),
    /// It ends within this part.
    Truncated(&'static str),
    /// A count or size is larger than the limit.
    TooLarge(&'static str),
    /// Entry n of a part has a field that is out of range or reserved.
    Field(&'static str, u32),
    /// The region's start is not what the host provides.
    Region(u64),
    /// This function is called indirectly, and does not begin with endbr64, which the host needs.
    Landing(u32),
    /// It has indirect branches of its own, and the host wants thunks.
    IndirectBranches,
}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        use Malformed::*;
        match self {
            Magic => f.write_str("not a typed program: its first bytes are not KYZTYPED"),
            Version(v) => write!(f, "version {v} of the format; this checker knows {VERSION}"),
            Truncated(part) => write!(f, "the file ends within its {part}"),
            TooLarge(part) => write!(f, "too many or too large: {part}"),
            Field(part, n) => write!(f, "{part} {n}: a field is out of range"),
            Region(at) => write!(f, "made for a region at {at:#x}, which this host does not have"),
            Landing(n) => {
                write!(f, "function {n} is called indirectly: it must begin with endbr64 here")
            }
            IndirectBranches => f.write_str(
                "the text has indirect branches of its own; this host allows thunks only",
            ),
        }
    }
}

/// Arguments and result of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Type of the registers of [`ARGUMENTS`] at the entry.
    pub arguments: [Value; 6],
    /// 8-byte arguments on the stack; any numbers.
    pub stack: u8,
    /// Bit n: only the lower four bytes of stack argument n are data.
    pub halves: u32,
    /// Type of rax at the return; unknown if there is no result.
    pub result: Value,
}

impl Signature {
    /// Bytes of a signature in the file.
    pub const BYTES: usize = 12;
    /// Nothing is passed.
    pub(crate) const NONE: Signature =
        Signature { arguments: [Value::UNKNOWN; 6], stack: 0, halves: 0, result: Value::UNKNOWN };

    fn parse(b: &[u8; Signature::BYTES]) -> Option<Signature> {
        let mut arguments = [Value::UNKNOWN; 6];
        let count = b[1] as usize;
        for (n, argument) in arguments.iter_mut().enumerate() {
            *argument = passed(b[2 + n])?;
            if (b[2 + n] != 0) != (n < count) || b[2 + n] > UNKNOWN {
                return None;
            }
        }
        let halves = u32::from_le_bytes([b[9], b[10], b[11], 0]);
        if count > 6 || b[0] == UNKNOWN || b[8] > MOST_STACK_ARGUMENTS || halves >> b[8] != 0 {
            return None;
        }
        Some(Signature { arguments, stack: b[8], halves, result: passed(b[0])? })
    }
}

/// The type of what a code says is passed.
fn passed(code: u8) -> Option<Value> {
    Some(match code {
        0 | UNKNOWN => Value::UNKNOWN,
        1 => Value::ANY,
        2 => Value::data(4),
        3 => Value::data(2),
        4 => Value::data(1),
        VIEW | WRITABLE_VIEW => {
            let spot = Spot { origin: 0, low: 0, room: 0 };
            Value::View { spot, write: code == WRITABLE_VIEW, exact: true }
        }
        _ => return None,
    })
}

/// One function of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its number.
    pub index: u32,
    /// First byte in the text.
    pub start: u32,
    /// First byte after it.
    pub end: u32,
    /// Number of its signature.
    pub signature: u16,
    /// Deepest frame in bytes.
    pub frame: u32,
}

/// A table of functions of one signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTable {
    /// Number of its first entry among all.
    pub first: u32,
    /// Number of entries.
    pub count: u32,
    /// Signature of each.
    pub signature: u16,
}

/// A table of places in one function, in the read-only data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JumpTable {
    /// Its start in the read-only data.
    pub start: u32,
    /// Number of entries, each of four bytes: the distance from the table's start to a place in the text.
    pub count: u32,
    /// The function that may use it.
    pub function: u32,
}

/// A function of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import {
    /// The number that the host knows it by.
    pub number: u16,
    /// Number of its signature.
    pub signature: u16,
}

/// Where a direct call or jump leads that leaves its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A function of the program.
    Function(Function),
    /// An import.
    Import(u32),
    /// The thunk that continues at the address in a register.
    Thunk(Register),
    /// The stub that returns.
    Return,
}

/// What the host provides and demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Start of the region.
    pub region: u64,
    /// Bytes reserved for it with its guard. An access within them may fault, and ends the program.
    pub reserved: u64,
    /// The text may have indirect calls, indirect jumps and returns of its own. A kernel that uses thunks against
    /// speculation says no.
    pub indirect_branches: bool,
    /// Where indirect branches lead, the text must have endbr64: the processor's indirect branch tracking is on.
    pub tracking: bool,
}

/// endbr64
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// A parsed file. Everything but text and annotations is in range.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    host: Host,
    indirect_branches: bool,
    signatures: &'a [[u8; Signature::BYTES]],
    functions: &'a [[u8; 12]],
    call_tables: &'a [[u8; 8]],
    entries: &'a [[u8; 4]],
    jump_tables: &'a [[u8; 12]],
    imports: &'a [[u8; 4]],
    annotations: &'a [u8],
    read_only: &'a [u8],
    text: &'a [u8],
    rest: &'a [u8],
    /// The function where the program starts.
    pub entry: u32,
}

const fn align(offset: u32) -> u32 {
    (offset + ALIGN - 1) & !(ALIGN - 1)
}

/// The first of `count` items that is behind what is looked for; items are in order.
fn first(count: u32, behind: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = (low + high) / 2;
        if behind(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (low < count).then_some(low)
}

impl<'a> Program<'a> {
    /// Takes a file apart and checks all that is not text.
    pub fn parse(file: &'a [u8], host: Host) -> Result<Self, Malformed> {
        Self::parse_with(file, host, || ())
    }

    /// As [`Program::parse`], but calls `step` for each signature, function, entry of call tables, jump table and
    /// import. A file can have many of each, and a kernel must schedule meanwhile.
    pub fn parse_with(file: &'a [u8], host: Host, step: impl FnMut()) -> Result<Self, Malformed> {
        if file.get(..8) != Some(MAGIC) {
            return Err(Malformed::Magic);
        }
        let (header, mut rest) = file.split_first_chunk().ok_or(Malformed::Truncated("header"))?;
        let field = |at| u32_at::<HEADER>(header, at);
        let version = field(8);
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let flags = field(12);
        if flags > 1 {
            return Err(Malformed::Field("flags", flags));
        }
        if flags == 1 && !host.indirect_branches {
            return Err(Malformed::IndirectBranches);
        }
        let region = field(16) as u64 | (field(20) as u64) << 32;
        if region != host.region {
            return Err(Malformed::Region(region));
        }
        let mut part = |name, at, bytes: usize, most| {
            let count = field(at);
            if count > most {
                return Err(Malformed::TooLarge(name));
            }
            let (head, tail) =
                rest.split_at_checked(count as usize * bytes).ok_or(Malformed::Truncated(name))?;
            rest = tail;
            Ok(head)
        };
        let signatures = part("signatures", 32, Signature::BYTES, u16::MAX as u32)?.as_chunks().0;
        let functions = part("functions", 36, 12, MOST_ITEMS)?.as_chunks().0;
        let call_tables = part("call tables", 40, 8, u16::MAX as u32)?.as_chunks().0;
        let entries = part("entries of call tables", 52, 4, MOST_ITEMS)?.as_chunks().0;
        let jump_tables = part("jump tables", 44, 12, u16::MAX as u32)?.as_chunks().0;
        let imports = part("imports", 48, 4, u16::MAX as u32)?.as_chunks().0;
        let annotations = part("annotations", 56, 1, MOST_BYTES)?;
        let read_only = part("read-only data", 28, 1, MOST_BYTES)?;
        let text = part("text", 24, 1, MOST_BYTES)?;
        let program = Program {
            host,
            indirect_branches: flags == 1,
            signatures,
            functions,
            call_tables,
            entries,
            jump_tables,
            imports,
            annotations,
            read_only,
            text,
            rest,
            entry: field(60),
        };
        program.check_fields(step)?;
        Ok(program)
    }

    fn check_fields(&self, mut step: impl FnMut()) -> Result<(), Malformed> {
        for (n, b) in self.signatures.iter().enumerate() {
            step();
            Signature::parse(b).ok_or(Malformed::Field("signature", n as u32))?;
        }
        let signatures = self.signatures.len() as u16;
        let mut last = None;
        for n in 0..self.function_count() {
            step();
            let f = self.function(n);
            let start = self.annotation_start(n);
            let in_order = match last {
                None => f.start == 0 && start == 0,
                Some((text, annotations)) => f.start > text && start >= annotations,
            };
            last = Some((f.start, start));
            if !in_order
                || f.start >= f.end
                || start as usize > self.annotations.len()
                || f.signature >= signatures
                || matches!(self.signature(f.signature).result, Value::View { .. })
                || f.frame > MOST_FRAME
            {
                return Err(Malformed::Field("function", n));
            }
        }
        let functions = self.function_count();
        // A host calls the entry with register arguments only.
        if self.entry >= functions || self.signature(self.function(self.entry).signature).stack > 0
        {
            return Err(Malformed::Field("entry", self.entry));
        }
        if !self.is_landing(self.function(self.entry).start) {
            return Err(Malformed::Landing(self.entry));
        }
        let mut next = 0;
        for n in 0..self.call_table_count() {
            let t = self.call_table(n);
            if t.first != next || t.count == 0 || t.signature >= signatures {
                return Err(Malformed::Field("call table", n as u32));
            }
            next += t.count;
            for at in t.first..next {
                step();
                let function = self.entries.get(at as usize).map(|b| u32_at(b, 0));
                let function = function.filter(|&f| f < functions).map(|f| self.function(f));
                let function = function.filter(|f| f.signature == t.signature);
                let function = function.ok_or(Malformed::Field("entry of call tables", at))?;
                if !self.is_landing(function.start) {
                    return Err(Malformed::Landing(function.index));
                }
            }
        }
        if next as usize != self.entries.len() {
            return Err(Malformed::Field("entry of call tables", next));
        }
        let mut end = 0;
        for n in 0..self.jump_table_count() {
            step();
            let t = self.jump_table(n);
            let bytes = t.count as u64 * 4;
            if t.start < end
                || !t.start.is_multiple_of(4)
                || t.count == 0
                || t.start as u64 + bytes > self.read_only.len() as u64
                || t.function >= functions
            {
                return Err(Malformed::Field("jump table", n as u32));
            }
            end = t.start + bytes as u32;
        }
        for n in 0..self.import_count() {
            step();
            let import = self.import(n);
            let codes = self.signature_bytes(import.signature);
            let view = match import.number & (RETURNS_VIEW | VIEW_IS_WRITABLE) {
                RETURNS_VIEW => codes[0] == VIEW,
                0 | VIEW_IS_WRITABLE => codes[0] < VIEW,
                _ => codes[0] == WRITABLE_VIEW,
            };
            if import.signature >= signatures || codes[2..8].contains(&UNKNOWN) || !view {
                return Err(Malformed::Field("import", n));
            }
        }
        Ok(())
    }

    /// Whether an indirect branch may lead to this offset of the text on this host.
    pub(crate) fn is_landing(&self, offset: u32) -> bool {
        !self.host.tracking
            || self.text.get(offset as usize..).is_some_and(|text| text.starts_with(&LANDING))
    }

    /// What the host provides.
    pub fn host(&self) -> Host {
        self.host
    }

    /// Whether the text may have indirect branches and returns of its own.
    pub fn indirect_branches(&self) -> bool {
        self.indirect_branches
    }

    /// The machine code.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The read-only data.
    pub fn read_only(&self) -> &'a [u8] {
        self.read_only
    }

    /// What follows the text in the file.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Where the read-only data lies in the image.
    pub fn read_only_start(&self) -> u32 {
        align(self.text.len() as u32)
    }

    /// Where the call tables lie in the image.
    pub fn call_tables_start(&self) -> u32 {
        align(self.read_only_start() + self.read_only.len() as u32)
    }

    /// Where the stubs lie in the image.
    pub fn stubs_start(&self) -> u32 {
        align(self.call_tables_start() + self.entries.len() as u32 * 8)
    }

    /// Bytes of the image.
    pub fn image_size(&self) -> u32 {
        self.stubs_start() + (self.import_count() + 17) * STUB
    }

    /// Number of functions.
    pub fn function_count(&self) -> u32 {
        self.functions.len() as u32
    }

    /// Function n, which must exist.
    pub fn function(&self, n: u32) -> Function {
        let b = &self.functions[n as usize];
        let text = self.text.len() as u32;
        let end = self.functions.get(n as usize + 1).map_or(text, |next| u32_at(next, 0));
        Function {
            index: n,
            start: u32_at(b, 0),
            end: end.min(text),
            signature: u16_at(b, 8),
            frame: u16_at(b, 10) as u32 * 8,
        }
    }

    fn annotation_start(&self, n: u32) -> u32 {
        self.functions.get(n as usize).map_or(self.annotations.len() as u32, |b| u32_at(b, 4))
    }

    /// The annotations of function n.
    pub fn annotations(&self, n: u32) -> &'a [u8] {
        let start = self.annotation_start(n) as usize;
        let end = self.annotation_start(n + 1) as usize;
        self.annotations.get(start..end).unwrap_or(&[])
    }

    /// Signature n, which must exist.
    pub fn signature(&self, n: u16) -> Signature {
        Signature::parse(self.signature_bytes(n)).unwrap_or(Signature::NONE)
    }

    /// The bytes of signature n, which must exist.
    pub fn signature_bytes(&self, n: u16) -> &'a [u8; Signature::BYTES] {
        self.signatures.get(n as usize).unwrap_or(&[0; Signature::BYTES])
    }

    /// Number of call tables.
    pub fn call_table_count(&self) -> u16 {
        self.call_tables.len() as u16
    }

    /// Call table n, which must exist.
    pub fn call_table(&self, n: u16) -> CallTable {
        let b = &self.call_tables[n as usize];
        CallTable { first: u32_at(b, 0), count: u16_at(b, 4) as u32, signature: u16_at(b, 6) }
    }

    /// The functions of all call tables, in the order of their entries.
    pub fn entries(&self) -> impl Iterator<Item = u32> + 'a {
        self.entries.iter().map(|b| u32_at(b, 0))
    }

    /// Number of jump tables.
    pub fn jump_table_count(&self) -> u16 {
        self.jump_tables.len() as u16
    }

    /// Jump table n, which must exist.
    pub fn jump_table(&self, n: u16) -> JumpTable {
        let b = &self.jump_tables[n as usize];
        JumpTable { start: u32_at(b, 0), count: u32_at(b, 4), function: u32_at(b, 8) }
    }

    /// The places that a jump table leads to, as offsets in the text; they can be anything.
    pub fn targets(&self, table: JumpTable) -> impl Iterator<Item = i64> + 'a {
        let start = table.start as usize;
        let base = self.read_only_start() as i64 + table.start as i64;
        let bytes = self.read_only.get(start..start + table.count as usize * 4).unwrap_or(&[]);
        bytes.as_chunks().0.iter().map(move |&b| base + i32::from_le_bytes(b) as i64)
    }

    /// Number of imports.
    pub fn import_count(&self) -> u32 {
        self.imports.len() as u32
    }

    /// Import n, which must exist.
    pub fn import(&self, n: u32) -> Import {
        let b = &self.imports[n as usize];
        Import { number: u16_at(b, 0), signature: u16_at(b, 2) }
    }

    /// What begins at this offset of the image.
    pub fn callee(&self, offset: i64) -> Option<Callee> {
        if let Some(stub) = offset.checked_sub(self.stubs_start() as i64).filter(|&at| at >= 0) {
            let n = u32::try_from(stub / STUB as i64).ok().filter(|_| stub % STUB as i64 == 0)?;
            let imports = self.import_count();
            return match n.checked_sub(imports) {
                None => Some(Callee::Import(n)),
                Some(register @ 0..=15) => Some(Callee::Thunk(register as Register)),
                Some(16) => Some(Callee::Return),
                Some(_) => None,
            };
        }
        let offset = u32::try_from(offset).ok()?;
        let n = first(self.function_count(), |n| self.function(n).start >= offset)?;
        Some(self.function(n)).filter(|f| f.start == offset).map(Callee::Function)
    }

    /// What an aligned read of 8 bytes at an address of this range gives, if that is within one call table.
    pub(crate) fn table_entry(&self, range: Range) -> Option<Value> {
        let start = self.call_tables_start() as u64;
        let offset = range.low().checked_sub(start)?;
        if !offset.is_multiple_of(8) || range.stride() < 3 {
            return None;
        }
        let end = |n| {
            let t = self.call_table(n as u16);
            start + (t.first as u64 + t.count as u64) * 8
        };
        let n = first(self.call_table_count().into(), |n| end(n) > range.low())?;
        (range.high() < end(n)).then_some(Value::Entry(n as u16))
    }

    /// What a signed read of 4 bytes at an address of this range gives, if that is within one jump table of the
    /// function.
    pub(crate) fn jump_distance(&self, range: Range, function: u32) -> Option<Value> {
        let start = self.read_only_start() as u64;
        let offset = range.low().checked_sub(start)?;
        if range.stride() < 2 {
            return None;
        }
        let end = |t: JumpTable| t.start as u64 + t.count as u64 * 4;
        let count = self.jump_table_count();
        let n = first(count.into(), |n| end(self.jump_table(n as u16)) > offset)? as u16;
        let t = self.jump_table(n);
        let inside = offset >= t.start as u64
            && (offset - t.start as u64).is_multiple_of(4)
            && range.high() - start < end(t);
        (inside && t.function == function).then_some(Value::Distance(n))
    }
}
