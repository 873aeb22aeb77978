//! A program that consists of the calls that a test makes.
#![allow(dead_code)] // Each test uses a part.

use std::fs::File;
use std::path::Path;

use kyozon_typed_wasi::types::Rights;
use kyozon_typed_wasi::{Errno, Function, Memory, Wasi, PARAMETERS};
use kyozon_typed_wasi_host::{Directory, Process};

/// Where results are written.
pub const OUT: u64 = 8;
/// Where data is read to.
pub const DATA: u64 = 0x8000;
const STRINGS: u64 = 0x1000;

pub struct Guest<'w, 'a> {
    pub wasi: &'w mut Wasi<'a, Process>,
    memory: Box<[u8]>,
    next: u64,
}

pub fn directory(path: &Path, name: &str, rights: Rights) -> Directory {
    let handle = File::open(path).unwrap().into();
    Directory { name: name.into(), handle, rights }
}

impl<'w, 'a> Guest<'w, 'a> {
    pub fn new(wasi: &'w mut Wasi<'a, Process>) -> Guest<'w, 'a> {
        Guest { wasi, memory: vec![0; 1 << 16].into_boxed_slice(), next: STRINGS }
    }

    pub fn call(&mut self, function: Function, arguments: &[u64]) -> Result<(), Errno> {
        self.next = STRINGS;
        let mut all = [0; PARAMETERS];
        all[..arguments.len()].copy_from_slice(arguments);
        match self.wasi.call(function, &all, &mut self.memory).expect("the program exits") {
            0 => Ok(()),
            error => Err(Errno::from_number(error.into()).expect("an error of the interface")),
        }
    }

    /// The code with which the program ends by this call.
    pub fn exit(&mut self, function: Function, arguments: &[u64; PARAMETERS]) -> Option<u32> {
        self.wasi.call(function, arguments, &mut self.memory).err().map(|exit| exit.0)
    }

    /// Puts bytes into the memory until the next call.
    pub fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.next;
        self.memory.write(at as u32, bytes).unwrap();
        self.next = at + bytes.len() as u64;
        at
    }

    pub fn text(&mut self, text: impl AsRef<[u8]>) -> [u64; 2] {
        let text = text.as_ref();
        [self.put(text), text.len() as u64]
    }

    pub fn buffers(&mut self, buffers: &[[u64; 2]]) -> [u64; 2] {
        let words = buffers.iter().flatten().map(|word| (*word as u32).to_le_bytes());
        [self.put(&words.collect::<Vec<_>>().concat()), buffers.len() as u64]
    }

    pub fn bytes(&self, at: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; length as usize];
        self.memory.read(at as u32, &mut bytes).unwrap();
        bytes
    }

    pub fn u32(&self, at: u64) -> u64 {
        u32::from_le_bytes(self.bytes(at, 4).try_into().unwrap()).into()
    }

    pub fn u64(&self, at: u64) -> u64 {
        u64::from_le_bytes(self.bytes(at, 8).try_into().unwrap())
    }

    /// Opens below descriptor 0.
    pub fn open(
        &mut self,
        path: &str,
        lookup: u64,
        flags: u64,
        rights: Rights,
    ) -> Result<u64, Errno> {
        let [at, length] = self.text(path);
        let arguments = [0, lookup, at, length, flags, rights.0, rights.0, 0, OUT];
        self.call(Function::PathOpen, &arguments)?;
        Ok(self.u32(OUT))
    }

    pub fn read(&mut self, fd: u64) -> Result<Vec<u8>, Errno> {
        let [at, count] = self.buffers(&[[DATA, 0x4000]]);
        self.call(Function::FdRead, &[fd, at, count, OUT])?;
        Ok(self.bytes(DATA, self.u32(OUT)))
    }

    pub fn write(&mut self, fd: u64, data: &[u8]) -> Result<u64, Errno> {
        let data = self.text(data);
        let [at, count] = self.buffers(&[data]);
        self.call(Function::FdWrite, &[fd, at, count, OUT])?;
        Ok(self.u32(OUT))
    }

    pub fn close(&mut self, fd: u64) {
        self.call(Function::FdClose, &[fd]).unwrap();
    }
}
