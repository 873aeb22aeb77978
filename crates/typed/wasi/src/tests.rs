//! Every function over a host in memory: what it does, its layouts, and each way to fail.

mod calls;
mod every;
mod fake;
mod paths;

use std::string::String;
use std::vec;
use std::vec::Vec;

use crate::table::Entry;
use crate::types::{FileType, Rights};
use crate::{Errno, Exit, Function, Program, Scratch, Storage, Wasi, PARAMETERS};
use fake::{Fake, Files};

/// Where results are written.
const OUT: u32 = 0x100;
/// Where arguments are put.
const IN: u32 = 0x1000;
const MEMORY: usize = 0x10000;

/// A program with its host.
struct Test<'a> {
    wasi: Wasi<'a, Fake>,
    memory: Vec<u8>,
    next: u32,
}

/// Runs a test on a program that has: a pipe as 0, a regular file `f` ("hello") as 1, a stream socket as 2, and the
/// directory `/data` as 3. The directory contains the file and
///
/// ```text
/// d/g            a file, "inner"
/// d/link         -> ../f
/// up             -> ..
/// absolute       -> /f
/// round          -> round
/// dlink          -> d/
/// dangling       -> d/new
/// ```
fn with(test: impl FnOnce(&mut Test<'_>)) {
    let host = Fake::new();
    let files = host.files.clone();
    let file;
    {
        let mut files = files.borrow_mut();
        file = files.create(0, b"f", FileType::RegularFile, b"hello").unwrap();
        let d = files.create(0, b"d", FileType::Directory, b"").unwrap();
        files.create(d, b"g", FileType::RegularFile, b"inner").unwrap();
        let mut link = |at, name: &[u8], target: &[u8]| {
            files.create(at, name, FileType::SymbolicLink, target).unwrap();
        };
        link(d, b"link", b"../f");
        link(0, b"up", b"..");
        link(0, b"absolute", b"/f");
        link(0, b"round", b"round");
        link(0, b"dlink", b"d/");
        link(0, b"dangling", b"d/new");
    }
    let pipe = files.borrow_mut().add(FileType::Unknown, b"");
    let socket = files.borrow_mut().add(FileType::SocketStream, b"received");
    let entries = [
        Entry::new(host.handle(pipe), FileType::Unknown),
        Entry::new(host.handle(file), FileType::RegularFile),
        Entry::new(host.handle(socket), FileType::SocketStream),
        Entry::preopen(host.handle(0), 0, Rights::ALL),
    ];
    let mut descriptors: Vec<_> = entries.into_iter().map(Some).collect();
    descriptors.resize_with(8, || None);
    let mut entered = [(); 2].map(|()| [(); 16].map(|()| None));
    let [first, second] = &mut entered;
    let mut scratch = Scratch::new();
    let storage =
        Storage { descriptors: &mut descriptors, entered: [first, second], scratch: &mut scratch };
    let program =
        Program { arguments: &[b"program", b"-x"], environment: &[b"A=1"], preopens: &[b"/data"] };
    let wasi = Wasi::new(host, storage, program);
    test(&mut Test { wasi, memory: vec![0xcc; MEMORY], next: IN });
    drop((descriptors, entered));
    assert_eq!(files.borrow().open, 0, "handles were lost");
}

impl Test<'_> {
    fn try_call(&mut self, function: Function, arguments: &[u64]) -> Result<u16, Exit> {
        let mut all = [0xdead_beef_dead_beef; PARAMETERS];
        for (n, kind) in function.signature().parameters.iter().enumerate() {
            // What a program leaves in the upper half of a register must not matter.
            let garbage = if *kind == crate::function::Type::I32 { 0xabcd << 32 } else { 0 };
            all[n] = arguments[n] | garbage;
        }
        assert_eq!(arguments.len(), function.signature().parameters.len());
        self.wasi.call(function, &all, &mut self.memory)
    }

    /// The error of a call, or 0.
    fn call(&mut self, function: Function, arguments: &[u64]) -> u16 {
        self.try_call(function, arguments).unwrap()
    }

    fn succeed(&mut self, function: Function, arguments: &[u64]) {
        let name = function.signature().name;
        let error = self.call(function, arguments);
        assert_eq!(error, 0, "{name} {arguments:x?}: {:?}", Errno::from_number(error.into()));
    }

    fn fail(&mut self, function: Function, arguments: &[u64], error: Errno) {
        let name = function.signature().name;
        let got = self.call(function, arguments);
        assert_eq!(Errno::from_number(got.into()), Some(error), "{name} {arguments:x?}");
    }

    /// Puts bytes into the memory, at an odd address.
    fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.next | 1;
        self.memory[at as usize..][..bytes.len()].copy_from_slice(bytes);
        self.next = at + bytes.len() as u32;
        at.into()
    }

    /// Address and length of a string.
    fn text(&mut self, text: impl AsRef<[u8]>) -> [u64; 2] {
        let text = text.as_ref();
        [self.put(text), text.len() as u64]
    }

    /// Address and number of buffers.
    fn buffers(&mut self, buffers: &[(u64, u64)]) -> [u64; 2] {
        let mut bytes = Vec::new();
        for (at, length) in buffers {
            bytes.extend((*at as u32).to_le_bytes());
            bytes.extend((*length as u32).to_le_bytes());
        }
        [self.put(&bytes), buffers.len() as u64]
    }

    fn bytes(&self, at: impl Into<u64>, length: usize) -> &[u8] {
        &self.memory[at.into() as usize..][..length]
    }

    fn u32(&self, at: impl Into<u64>) -> u32 {
        u32::from_le_bytes(self.bytes(at, 4).try_into().unwrap())
    }

    fn u64(&self, at: impl Into<u64>) -> u64 {
        u64::from_le_bytes(self.bytes(at, 8).try_into().unwrap())
    }

    fn files<R>(&mut self, use_: impl FnOnce(&mut Files) -> R) -> R {
        let files = self.wasi.host().files.clone();
        let result = use_(&mut files.borrow_mut());
        result
    }

    fn log(&mut self) -> Vec<String> {
        self.files(|files| std::mem::take(&mut files.log))
    }

    /// Opens below directory 3 with every right, and returns the descriptor or the error.
    fn open(&mut self, path: &str, lookup: u64, flags: u64) -> Result<u64, Errno> {
        self.open_with(3, path, lookup, flags, Rights::ALL, 0)
    }

    fn open_with(
        &mut self,
        fd: u64,
        path: &str,
        lookup: u64,
        flags: u64,
        rights: Rights,
        fd_flags: u64,
    ) -> Result<u64, Errno> {
        let [at, length] = self.text(path);
        let arguments = [fd, lookup, at, length, flags, rights.0, rights.0, fd_flags, OUT.into()];
        match self.call(Function::PathOpen, &arguments) {
            0 => Ok(self.u32(OUT).into()),
            error => Err(Errno::from_number(error.into()).unwrap()),
        }
    }
}
