//! The stack that a program finds at its entry: System V ABI, x86-64 supplement, section 3.4.1.

use crate::image::Image;
use kyozon_libc::seam::{Seam, AT_KYOZON};
use std::ffi::{c_ulong, OsString};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{copy_nonoverlapping, null_mut};
use std::{env, io};

/// Size of the stack in bytes: Linux's default.
const BYTES: usize = 8 << 20;

/// Entries of the auxiliary vector that are the host's own: the kernel's answers hold for the program too.
const INHERITED: [c_ulong; 9] = [
    libc::AT_PAGESZ,
    libc::AT_HWCAP,
    libc::AT_CLKTCK,
    libc::AT_UID,
    libc::AT_EUID,
    libc::AT_GID,
    libc::AT_EGID,
    libc::AT_SECURE,
    libc::AT_RANDOM,
];

/// A stack under construction.
struct Stack {
    base: *mut u8,
    /// Bytes above `base` that are free.
    free: usize,
}

/// Builds the program's stack, and returns the stack pointer.
pub fn build(image: &Image, arguments: &[OsString], seam: &'static Seam) -> Result<usize, String> {
    let mut stack = Stack::new()?;
    let mut string = |text: &[u8]| stack.push(&[text, b"\0"].concat());
    let arguments: Vec<usize> =
        arguments.iter().map(|argument| string(argument.as_bytes())).collect::<Result<_, _>>()?;
    let variables: Vec<usize> = env::vars_os()
        .map(|(name, value)| string(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<_, _>>()?;
    let mut words = vec![arguments.len()];
    words.extend(&arguments);
    words.push(0);
    words.extend(&variables);
    words.push(0);
    let mut entry = |kind: c_ulong, value: usize| words.extend([kind as usize, value]);
    entry(AT_KYOZON, &raw const *seam as usize);
    entry(libc::AT_PHDR, image.headers);
    entry(libc::AT_PHENT, size_of::<libc::Elf64_Phdr>());
    entry(libc::AT_PHNUM, image.header_count);
    entry(libc::AT_ENTRY, image.entry);
    entry(libc::AT_EXECFN, arguments[0]);
    for kind in INHERITED {
        // SAFETY: The call only reads the host's own vector. What it points to stays where it is.
        entry(kind, unsafe { libc::getauxval(kind) } as usize);
    }
    entry(libc::AT_NULL, 0);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    // The stack pointer is a multiple of 16.
    stack.free = stack.free.saturating_sub(bytes.len()) / 16 * 16 + bytes.len();
    stack.push(&bytes)
}

impl Stack {
    /// An empty stack. It is never unmapped. Below it the kernel keeps a gap, as below every stack that may grow.
    fn new() -> Result<Self, String> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE
            | libc::MAP_ANONYMOUS
            | libc::MAP_NORESERVE
            | libc::MAP_STACK
            | libc::MAP_GROWSDOWN;
        // SAFETY: The kernel chooses free addresses.
        let base = unsafe { libc::mmap(null_mut(), BYTES, rights, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(format!("cannot map a stack: {}", io::Error::last_os_error()));
        }
        Ok(Self { base: base.cast(), free: BYTES })
    }

    /// Puts bytes on the stack; their address.
    fn push(&mut self, bytes: &[u8]) -> Result<usize, String> {
        self.free = self.free.checked_sub(bytes.len()).ok_or("the arguments are too long")?;
        // SAFETY: The bytes fit between the base and what is in use.
        let place = unsafe { self.base.add(self.free) };
        // SAFETY: As before; nothing else refers to the stack yet.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        Ok(place as usize)
    }
}
