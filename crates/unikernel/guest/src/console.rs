//! The console: output of the guest.

use crate::raw;
use core::fmt::{self, Write};
use kyozon_abi::unikernel::{ASK_CONSOLE, STREAM_ERROR, STREAM_OUTPUT};

/// Bytes that are collected before a hypercall, as hypercalls are slow.
const BUFFER: usize = 512;

/// Writes bytes to the console, unchanged.
pub fn write(bytes: &[u8]) {
    write_to(STREAM_OUTPUT, bytes);
}

/// Writes bytes to standard error, unchanged.
pub fn write_error(bytes: &[u8]) {
    write_to(STREAM_ERROR, bytes);
}

fn write_to(stream: u64, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the tender reads these bytes.
        let written = unsafe {
            raw::hypercall(ASK_CONSOLE, &[bytes.as_ptr() as u64, bytes.len() as u64, stream])
        };
        match written {
            Ok(written) if written > 0 => bytes = bytes.get(written as usize..).unwrap_or(&[]),
            // There is no place to report an error.
            _ => return,
        }
    }
}

/// Collects formatted pieces of a line.
struct Buffer {
    bytes: [u8; BUFFER],
    used: usize,
}

impl Buffer {
    fn flush(&mut self) {
        write(&self.bytes[..self.used]);
        self.used = 0;
    }
}

impl Write for Buffer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.as_bytes().chunks(BUFFER) {
            if self.used + piece.len() > BUFFER {
                self.flush();
            }
            self.bytes[self.used..self.used + piece.len()].copy_from_slice(piece);
            self.used += piece.len();
        }
        Ok(())
    }
}

/// Prints formatted text, for [`print!`](crate::print).
pub fn print(arguments: fmt::Arguments<'_>) {
    let mut buffer = Buffer { bytes: [0; BUFFER], used: 0 };
    // Only a value's own formatting can fail; the text before it is printed.
    let _ = buffer.write_fmt(arguments);
    buffer.flush();
}

/// Prints to the console.
#[macro_export]
macro_rules! print {
    ($($argument:tt)*) => { $crate::console::print(format_args!($($argument)*)) };
}

/// Prints a line to the console.
#[macro_export]
macro_rules! println {
    () => { $crate::console::write(b"\n") };
    ($format:literal $($argument:tt)*) => {
        $crate::console::print(format_args!("{}\n", format_args!($format $($argument)*)))
    };
}
