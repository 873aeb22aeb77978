//! Lines of the event ring.

use kyozon_abi::layer::Fault;

/// A line in fixed memory; it fits one record of the event ring.
pub type Line = kyozon_abi::line::Line<208>;

/// Why the cokernel was stopped.
pub fn of_fault(fault: &Fault) -> Line {
    let f = &fault.frame;
    Line::new(format_args!(
        "cokernel stopped: reason {}, vector {}, error {:#x}, rip {:#x}, cr2 {:#x}, rsp {:#x}",
        fault.reason, f.vector, f.error, f.rip, fault.cr2, f.rsp
    ))
}
