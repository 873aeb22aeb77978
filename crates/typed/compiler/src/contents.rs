//! Writes manifests.

use kyozon_typed_manifest::{HEADER, MAGIC};

use crate::exports::Exported;
use crate::program::{Function, Program};

/// A manifest that is being made.
pub(crate) struct Contents {
    region: u64,
    runtime: u32,
    memories: Vec<u8>,
    memory_count: u32,
    contents: Vec<(u64, Vec<u8>)>,
    imports: Vec<[String; 3]>,
}

impl Contents {
    pub fn new(program: &Program<'_>) -> Self {
        let mut this = Contents {
            region: program.region,
            runtime: program.runtime as u32,
            memories: Vec::new(),
            memory_count: program.memories.len() as u32,
            contents: Vec::new(),
            imports: Vec::new(),
        };
        for memory in &program.memories {
            this.memories.extend((memory.base - program.region).to_le_bytes());
            this.memories.extend(memory.limits.initial.to_le_bytes());
            this.memories.extend(memory.most().to_le_bytes());
            this.add(memory.size, memory.limits.initial.to_le_bytes().to_vec());
        }
        for table in &program.tables {
            this.add(table.size, table.kind.limits.initial.to_le_bytes().to_vec());
        }
        this
    }

    /// Bytes at an address. Zeros are there anyway.
    pub fn add(&mut self, address: u64, bytes: Vec<u8>) {
        // Later contents may lie over earlier ones of a memory.
        self.contents.push((address - self.region, bytes));
    }

    pub fn import(&mut self, module: &str, name: &str, signature: &str) {
        self.imports.push([module.into(), name.into(), signature.into()]);
    }

    /// The manifest's bytes.
    pub fn finish(self, exports: &[(Option<Function>, Exported)]) -> Vec<u8> {
        let contents: Vec<_> =
            self.contents.iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
        let fixed = HEADER
            + self.memories.len()
            + 16 * contents.len()
            + 24 * (self.imports.len() + exports.len());
        let mut bytes: Vec<u8> = Vec::new();
        let mut refer = |out: &mut Vec<u8>, part: &[u8]| {
            out.extend(((fixed + bytes.len()) as u32).to_le_bytes());
            out.extend((part.len() as u32).to_le_bytes());
            bytes.extend(part);
        };
        let mut entries = self.memories;
        for (distance, part) in &contents {
            entries.extend(distance.to_le_bytes());
            refer(&mut entries, part);
        }
        for import in &self.imports {
            for part in import {
                refer(&mut entries, part.as_bytes());
            }
        }
        for (_, export) in exports {
            entries.extend((export.kind as u32).to_le_bytes());
            entries.extend(export.number.to_le_bytes());
            refer(&mut entries, export.name.as_bytes());
            refer(&mut entries, export.signature.as_bytes());
        }
        let numbers = [
            (fixed + bytes.len()) as u32,
            self.runtime,
            self.memory_count,
            contents.len() as u32,
            self.imports.len() as u32,
            exports.len() as u32,
        ];
        let mut out = MAGIC.to_vec();
        for number in numbers {
            out.extend(number.to_le_bytes());
        }
        out.extend(entries);
        out.extend(bytes);
        out
    }
}
