//! The module that hosts typed code, by its `/dev/kyozon-typed`.

use crate::machine::message;
use anyhow::{anyhow, Result};
use kyozon_abi::device::Image;
use kyozon_abi::typed::{
    TypedCheck, TypedContents, IOCTL_TYPED_CHECK, TYPED_MESSAGE_BYTES, TYPED_VERSION,
};
use rustix::io::Errno;
use rustix::ioctl::{ioctl, Updater};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;

/// The module's device.
const DEVICE: &str = "/dev/kyozon-typed";

/// Opens the device.
pub(super) fn device() -> Result<File> {
    OpenOptions::new().read(true).write(true).open(DEVICE).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            anyhow!("{DEVICE} does not exist: insert the module with modprobe kyozon-typed")
        }
        ErrorKind::PermissionDenied => {
            anyhow!("{DEVICE}: permission denied: run as root, or as a user who may open it")
        }
        _ => anyhow::Error::new(error).context(DEVICE),
    })
}

/// Lets the kernel check a program.
#[allow(unsafe_code)]
pub(super) fn check(device: &File, file: &[u8]) -> Result<TypedContents> {
    let mut request = TypedCheck {
        version: TYPED_VERSION,
        flags: 0,
        file: Image { address: file.as_ptr() as u64, bytes: file.len() as u64 },
        contents: TypedContents::default(),
        message: [0; TYPED_MESSAGE_BYTES],
    };
    // SAFETY: the opcode encodes the size of `TypedCheck`, and the kernel writes no more than that. The file lives
    // across this call, which only reads it.
    let outcome = unsafe {
        ioctl(device, Updater::<{ IOCTL_TYPED_CHECK as _ }, TypedCheck>::new(&mut request))
    };
    outcome.map_err(|error| match message(&request.message) {
        Some(line) => anyhow!("{line}"),
        None if error == Errno::NOTTY => {
            anyhow!(
                "{DEVICE} has another interface: install module and command from the same release"
            )
        }
        None => anyhow!("the module refuses: {error}"),
    })?;
    Ok(request.contents)
}
