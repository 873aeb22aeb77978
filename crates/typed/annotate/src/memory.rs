//! The checker's memory on a host that has plenty.

use kyozon_typed_checker::error::Error;
use kyozon_typed_checker::flow::{Label, Memory};
use kyozon_typed_checker::program::{Host, MOST_FRAME};
use kyozon_typed_checker::value::Value;
use kyozon_typed_checker::{check, Verdict};

/// Memory for the checker.
pub struct Arena {
    labels: Vec<Label>,
    granules: Vec<Value>,
    numbers: Vec<u32>,
}

impl Arena {
    /// Memory for so many labels, whose frames together have so many bytes.
    pub fn new(labels: usize, frames: usize) -> Arena {
        Arena {
            labels: vec![Label::BLANK; labels],
            granules: vec![Value::UNKNOWN; frames / 4 + MOST_FRAME as usize / 4],
            numbers: vec![0; 5 * labels],
        }
    }

    /// As the checker takes it.
    pub fn memory(&mut self) -> Memory<'_> {
        Memory {
            labels: &mut self.labels,
            granules: &mut self.granules,
            numbers: &mut self.numbers,
        }
    }
}

impl Default for Arena {
    /// Enough for the byte-code interpreter of sqlite.
    fn default() -> Self {
        Arena::new(1 << 14, 16 << 20)
    }
}

/// Checks a file; returns the verdict and the offsets of the instructions that may fault.
///
/// # Errors
///
/// The first broken rule.
pub fn verify<'a>(
    file: &'a [u8],
    host: Host,
    arena: &mut Arena,
) -> Result<(Verdict<'a>, Vec<u32>), Error> {
    let mut faults = vec![0; file.len()];
    let verdict = check(file, host, &mut arena.memory(), &mut faults, || true)?;
    faults.truncate(verdict.faults);
    Ok((verdict, faults))
}
