//! From offsets to lines of the source.

use kyozon_typed_checker::error::{Error, Rule};

use crate::object_file::{ObjectFile, Part, Place};
use crate::source::LINE;

/// Which line of a source an instruction comes from.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Name of the source.
    name: String,
    /// Parts, offsets and lines, sorted.
    places: Vec<(Part, u64, u32)>,
}

impl Lines {
    pub(crate) fn new(name: &str, object: &ObjectFile) -> Lines {
        let mut places = Vec::new();
        for symbol in &object.symbols {
            let number = symbol.name.strip_prefix(LINE).and_then(|n| n.parse().ok());
            if let (Some(line), Place::In(part, offset)) = (number, symbol.place) {
                places.push((part, offset, line));
            }
        }
        places.sort_unstable();
        Lines { name: name.into(), places }
    }

    pub(crate) fn at(&self, part: Part, offset: u64) -> Option<u32> {
        let after = self.places.partition_point(|&(p, o, _)| (p, o) <= (part, offset));
        let &(found, _, line) = self.places.get(after.checked_sub(1)?)?;
        (found == part).then_some(line)
    }

    /// The line of the instruction at an offset of the text.
    pub fn locate(&self, offset: u32) -> Option<u32> {
        self.at(Part::Text, u64::from(offset))
    }

    /// The checker's message with the place in the source.
    pub fn explain(&self, error: &Error) -> crate::Error {
        let line = match error.rule {
            Rule::File(_) => None,
            _ => self.locate(error.offset),
        };
        crate::Error { name: self.name.clone(), line, message: error.to_string() }
    }
}
