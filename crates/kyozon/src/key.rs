//! The key that opens a locked wall: the bytes of a file that the operator keeps.

use crate::machine::Machine;
use anyhow::{ensure, Result};
use kyozon_abi::device::{KEY_BYTES_MAX, KEY_BYTES_MIN};
use std::fmt;
use std::hint::black_box;
use std::path::Path;

/// A key, wiped when it is dropped.
#[derive(Default)]
pub struct Key(Vec<u8>);

impl Key {
    /// The key in `file`; without a file, one of no bytes, which stands for none.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or is obviously no key.
    pub fn of(machine: &impl Machine, file: Option<&Path>) -> Result<Self> {
        let Some(path) = file else { return Ok(Self::default()) };
        let key = Self(machine.read(path)?);
        let (shown, bytes) = (path.display(), key.0.len() as u64);
        ensure!(
            (KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&bytes),
            "{shown} has {bytes} bytes, a key has {KEY_BYTES_MIN} to {KEY_BYTES_MAX}: make one with head -c 32 /dev/urandom"
        );
        ensure!(
            key.0.iter().any(|byte| *byte != key.0[0]),
            "{shown} has the same byte everywhere: make a key with head -c 32 /dev/urandom"
        );
        Ok(key)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.fill(0);
        black_box(&self.0);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key of {} bytes", self.0.len())
    }
}
