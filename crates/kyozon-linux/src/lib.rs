//! `kyozon-linux fs` and `kyozon-linux exec`: Linux's file systems and programs without root and without a virtual machine.
//!
//! An executable of its own because it links kernel code (GPL-2.0-only) and because whoever opens a hostile image must be confined.
