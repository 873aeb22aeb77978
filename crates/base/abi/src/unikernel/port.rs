//! I/O ports and exceptions between the tender's code in a virtual machine and the tender.
//!
//! A guest MUST NOT use these ports. A guest that does so harms only itself.

/// Port `PORT_FAULT + v`, `v` below 256: exception `v` was delivered, its frame is at `rsp`.
pub const PORT_FAULT: u16 = 0;
/// Port of hypercalls.
pub const PORT_CALL: u16 = 0x500;
/// Port of doorbells: 4 bytes with the number of the peer or queue.
pub const PORT_DOORBELL: u16 = 0x504;
/// End of the ports that a guest can access, exclusive.
pub const PORT_END: u16 = 0x508;

/// Exceptions that push an error code: one bit per vector (Intel SDM volume 3, table 7-1).
pub const VECTORS_WITH_ERROR: u32 = 0x6022_7d00;
/// #DE.
pub const VECTOR_DIVIDE: u32 = 0;
/// #BP.
pub const VECTOR_BREAKPOINT: u32 = 3;
/// #UD.
pub const VECTOR_INVALID_OPCODE: u32 = 6;
/// #GP.
pub const VECTOR_PROTECTION: u32 = 13;
/// #PF.
pub const VECTOR_PAGE: u32 = 14;
