//! Virtio block, net, console and directory: one set of device models for tender and library Linux.
//!
//! Invariant: a guest's queue is hostile. A bad descriptor ends that queue, nothing else.
//!
//! Must not know: what drives the queue, a virtual machine or a function call.
