//! The kernel's type information (BTF): structures, their members, enumeration constants.
//!
//! Format: Linux, `Documentation/bpf/btf.rst`. The bytes are untrusted: every chain of types is followed for a bounded
//! number of steps.

use super::ProfileError;
use alloc::vec::Vec;

const MAGIC: u16 = 0xeb9f;
/// Maximum number of types; a kernel has about 150,000.
const MAX_TYPES: usize = 1 << 20;
/// Maximum length of a chain of typedefs, qualifiers and arrays, and maximum nesting of unnamed structures.
const MAX_DEPTH: usize = 16;
/// Maximum number of members that one lookup visits.
const MAX_VISITS: usize = 1 << 20;

// Kinds of types (`BTF_KIND_*`).
const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNCTION: u32 = 12;
const FUNCTION_PROTO: u32 = 13;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;
const FLOAT: u32 = 16;
const DECLARATION_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

/// Bytes of the header that all types have: name, info, size or type.
const TYPE_BYTES: usize = 12;

/// Parsed type information.
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Byte offset of each type in `types`, from type 1 on; type 0 is `void`.
    places: Vec<u32>,
    /// The structures and unions, by their names: the first bytes of the name, the byte offset of the type.
    aggregates: Vec<(u64, u32)>,
    /// The enumeration constants, likewise: also their numbers among those of the type.
    constants: Vec<(u64, u32, u32)>,
}

/// The header of a type.
#[derive(Clone, Copy)]
struct Type {
    name: usize,
    kind: u32,
    flag: bool,
    count: usize,
    /// Size, or ID of another type.
    value: u32,
    /// Byte offset of the data after the header.
    rest: usize,
}

impl<'a> Btf<'a> {
    /// Checks that `bytes` are a sequence of complete types.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Btf`] with the rule that they break.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ProfileError> {
        let unusable = ProfileError::Btf;
        let header: &[u8; 24] = bytes.first_chunk().ok_or(unusable("it is too short"))?;
        if header[..2] != MAGIC.to_le_bytes() || header[2] != 1 {
            return Err(unusable("it does not begin with the BTF magic number and version 1"));
        }
        let word = |at: usize| u32_at(header, at).unwrap_or(0) as usize;
        let body = bytes.get(word(4)..).ok_or(unusable("it is too short"))?;
        let part = |offset: usize, length: usize| body.get(offset..offset.checked_add(length)?);
        let types = part(word(8), word(12)).ok_or(unusable("the types lie outside the data"))?;
        let strings = part(word(16), word(20)).ok_or(unusable("the names lie outside the data"))?;
        let (places, aggregates, constants) = (Vec::new(), Vec::new(), Vec::new());
        let mut btf = Self { types, strings, places, aggregates, constants };
        let mut at = 0;
        while at < types.len() {
            let (found, end) =
                btf.type_at(at).ok_or(unusable("a type is truncated or of an unknown kind"))?;
            if btf.places.len() >= MAX_TYPES {
                return Err(unusable("there are too many types"));
            }
            btf.places.push(at as u32);
            btf.index(&found, at as u32);
            at = end;
        }
        btf.aggregates.sort_unstable();
        btf.constants.sort_unstable();
        Ok(btf)
    }

    /// Adds the names of the type `found` at byte `at` to those that are looked up.
    fn index(&mut self, found: &Type, at: u32) {
        if matches!(found.kind, STRUCT | UNION) {
            self.aggregates.push((self.head(found.name), at));
        }
        for number in 0..found.constants() {
            let name = u32_at(self.types, found.constant(number)).unwrap_or_default();
            self.constants.push((self.head(name as usize), at, number as u32));
        }
    }

    /// Byte offset and size of the member `path` of `structure`. The parts of a path lead through embedded structures;
    /// unnamed ones are searched as well. If several structures have the name, the first with the member counts.
    pub fn member(&self, structure: &str, path: &str) -> Option<(u64, u64)> {
        let mut visits = MAX_VISITS;
        self.called(structure).find_map(|aggregate| self.member_of(aggregate, path, &mut visits))
    }

    /// Size in bytes of the structure or union `name`.
    pub fn size_of(&self, name: &str) -> Option<u64> {
        self.called(name).map(|aggregate| u64::from(aggregate.value)).next()
    }

    /// Value of the enumeration constant `name`; the first if there are several.
    pub fn constant(&self, name: &str) -> Option<u64> {
        let head = head(name.as_bytes());
        let from = self.constants.partition_point(|constant| constant.0 < head);
        let alike = self.constants.get(from..)?.iter().take_while(|constant| constant.0 == head);
        alike.copied().find_map(|(_, at, number)| {
            let (kind, _) = self.type_at(at as usize)?;
            let at = kind.constant(number as usize);
            if !self.is_called(u32_at(self.types, at)? as usize, name) {
                return None;
            }
            let low = u32_at(self.types, at + 4)?;
            Some(match (kind.kind, kind.flag) {
                (ENUM64, _) => u64::from(low) | u64::from(u32_at(self.types, at + 8)?) << 32,
                (_, true) => low as i32 as i64 as u64,
                (_, false) => u64::from(low),
            })
        })
    }

    /// Structures and unions called `name`.
    fn called<'s>(&'s self, name: &'s str) -> impl Iterator<Item = Type> + 's {
        let head = head(name.as_bytes());
        let from = self.aggregates.partition_point(|aggregate| aggregate.0 < head);
        let alike = self.aggregates.get(from..).unwrap_or_default().iter();
        let alike = alike.take_while(move |aggregate| aggregate.0 == head);
        let all = alike.filter_map(|(_, at)| Some(self.type_at(*at as usize)?.0));
        all.filter(move |kind| self.is_called(kind.name, name))
    }

    fn member_of(&self, mut aggregate: Type, path: &str, visits: &mut usize) -> Option<(u64, u64)> {
        let mut offset = 0u64;
        let mut bytes = u64::from(aggregate.value);
        for (depth, part) in path.split('.').enumerate() {
            if depth >= MAX_DEPTH || part.is_empty() {
                return None;
            }
            if depth > 0 && !matches!(aggregate.kind, STRUCT | UNION) {
                return None;
            }
            let (inner, number) = self.search(aggregate, part, MAX_DEPTH, visits)?;
            offset = offset.checked_add(inner)?;
            bytes = self.bytes_of(number)?;
            aggregate = self.plain(number)?;
        }
        Some((offset, bytes))
    }

    /// Byte offset and type ID of the member `name`, also inside unnamed members.
    fn search(
        &self,
        aggregate: Type,
        name: &str,
        depth: usize,
        visits: &mut usize,
    ) -> Option<(u64, u32)> {
        for i in 0..aggregate.count {
            *visits = visits.checked_sub(1)?;
            let at = aggregate.rest + 12 * i;
            let [called, number, place] =
                [u32_at(self.types, at)?, u32_at(self.types, at + 4)?, u32_at(self.types, at + 8)?];
            // If the flag is set, the upper eight bits are the width of a bit field.
            let bits = if aggregate.flag { place & 0xff_ffff } else { place };
            let offset = u64::from(bits / 8);
            if self.is_called(called as usize, name) {
                return Some((offset, number));
            }
            if called == 0 && depth > 0 {
                let inner = self.plain(number).filter(|inner| matches!(inner.kind, STRUCT | UNION));
                if let Some((below, number)) =
                    inner.and_then(|inner| self.search(inner, name, depth - 1, visits))
                {
                    return Some((offset + below, number));
                }
            }
        }
        None
    }

    /// The type `number` without typedefs and qualifiers.
    fn plain(&self, mut number: u32) -> Option<Type> {
        for _ in 0..MAX_DEPTH {
            let found = self.numbered(number)?;
            match found.kind {
                TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => number = found.value,
                _ => return Some(found),
            }
        }
        None
    }

    /// Size in bytes of a value of type `number`.
    fn bytes_of(&self, mut number: u32) -> Option<u64> {
        let mut elements = 1u64;
        for _ in 0..MAX_DEPTH {
            let found = self.plain(number)?;
            match found.kind {
                INT | STRUCT | UNION | ENUM | ENUM64 | FLOAT => {
                    return elements.checked_mul(u64::from(found.value))
                }
                POINTER => return elements.checked_mul(8),
                ARRAY => {
                    number = u32_at(self.types, found.rest)?;
                    elements =
                        elements.checked_mul(u64::from(u32_at(self.types, found.rest + 8)?))?;
                }
                _ => return None,
            }
        }
        None
    }

    fn numbered(&self, number: u32) -> Option<Type> {
        self.nth((number as usize).checked_sub(1)?)
    }

    fn nth(&self, at: usize) -> Option<Type> {
        self.type_at(*self.places.get(at)? as usize).map(|(found, _)| found)
    }

    /// The type at byte `at`, and the offset of its end.
    fn type_at(&self, at: usize) -> Option<(Type, usize)> {
        let name = u32_at(self.types, at)? as usize;
        let info = u32_at(self.types, at + 4)?;
        let value = u32_at(self.types, at + 8)?;
        let (kind, count, rest) = (info >> 24 & 0x1f, (info & 0xffff) as usize, at + TYPE_BYTES);
        let more = match kind {
            INT | VARIABLE | DECLARATION_TAG => 4,
            ARRAY => 12,
            STRUCT | UNION | SECTION | ENUM64 => 12 * count,
            ENUM | FUNCTION_PROTO => 8 * count,
            POINTER | 7 | TYPEDEF | VOLATILE | CONST | RESTRICT | FUNCTION | FLOAT | TYPE_TAG => 0,
            _ => return None,
        };
        let end = rest + more;
        (end <= self.types.len())
            .then_some((Type { name, kind, flag: info >> 31 != 0, count, value, rest }, end))
    }

    /// The first bytes of the name at `offset`.
    fn head(&self, offset: usize) -> u64 {
        head(self.strings.get(offset..).unwrap_or_default())
    }

    fn is_called(&self, offset: usize, name: &str) -> bool {
        let rest = self.strings.get(offset..).unwrap_or_default();
        rest.get(name.len()) == Some(&0) && rest.starts_with(name.as_bytes())
    }
}

impl Type {
    /// Number of the constants, if this is an enumeration.
    fn constants(&self) -> usize {
        if matches!(self.kind, ENUM | ENUM64) {
            self.count
        } else {
            0
        }
    }

    /// The byte offset of one.
    fn constant(&self, number: usize) -> usize {
        self.rest + number * if self.kind == ENUM64 { 12 } else { 8 }
    }
}

/// The first eight bytes of a name that ends with a zero or with `text`, and zeros behind it.
fn head(text: &[u8]) -> u64 {
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    let mut bytes = [0; 8];
    match text.first_chunk() {
        Some(first) => bytes = *first,
        None => bytes[..text.len()].copy_from_slice(text),
    }
    let word = u64::from_le_bytes(bytes);
    // The lowest of these bits is that of the first zero byte.
    let zeros = word.wrapping_sub(LOWEST) & !word & LOWEST << 7;
    word & (zeros & zeros.wrapping_neg()).wrapping_shr(7).wrapping_sub(1)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_le_bytes(*chunk))
}
