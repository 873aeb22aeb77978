//! A line of text without an allocator.

use core::fmt::Write;
use kyozon_abi::layer::Fault;

/// A line in fixed memory; what does not fit is left out.
pub struct Line {
    text: [u8; 208],
    used: usize,
}

impl Line {
    /// What is written by `write!`.
    pub fn new(arguments: core::fmt::Arguments<'_>) -> Self {
        let mut line = Self { text: [0; 208], used: 0 };
        let _ = line.write_fmt(arguments);
        line
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.text[..self.used]
    }

    /// Why the cokernel was stopped.
    pub fn of_fault(fault: &Fault) -> Self {
        let f = &fault.frame;
        Self::new(format_args!(
            "cokernel stopped: reason {}, vector {}, error {:#x}, rip {:#x}, cr2 {:#x}, rsp {:#x}",
            fault.reason, f.vector, f.error, f.rip, fault.cr2, f.rsp
        ))
    }
}

impl Write for Line {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let free = &mut self.text[self.used..];
        let n = free.len().min(s.len());
        free[..n].copy_from_slice(&s.as_bytes()[..n]);
        self.used += n;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out() {
        assert_eq!(Line::new(format_args!("{}-{:#x}", 7, 255)).bytes(), b"7-0xff");
        let long = "x".repeat(300);
        assert_eq!(Line::new(format_args!("{long}y")).bytes(), &[b'x'; 208]);
    }
}
