//! The colocation layer: what lets a cokernel run beside Linux on the same CPU.
//!
//! A flat image of its own, mapped in the cokernel's world only. `kyozon.ko` enters it through
//! `abi::layer::LayerEntry`; it enters the cokernel through `abi::layer::BootBlock`.
//!
//! Invariants:
//!
//! 1. The modes (alone, hal, vmm) are implementations of one trait, chosen once; shared code never asks which.
//! 2. A tick is one event, whatever the mode and whatever the CPU was doing.
//! 3. A repair is all or nothing.
//! 4. Nothing of Linux's state is changed that is not put back before Linux runs again.
//!
//! Must not know: what the cokernel does with its time, or any structure of Linux.
#![no_std]
