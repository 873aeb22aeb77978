//! Makes files of typed code, and finds the annotations that the checker needs. Nothing here is trusted: what is wrong
//! in a file, the checker finds.

pub mod annotation;
pub mod infer;
pub mod layout;
pub mod memory;
pub mod module;
