//! What a confined kernel is.

use kyozon_devices::disk::Image;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to boot.
pub struct Config {
    pub(super) image: PathBuf,
    pub(super) program: Vec<OsString>,
    pub(super) memory_bytes: usize,
    pub(super) options: Vec<String>,
    pub(super) threads: usize,
    pub(super) limit: Duration,
    pub(super) disks: Vec<(Image, bool)>,
    pub(super) probe: Option<[u64; 7]>,
}

/// The program that runs a confined kernel, beside the kernel's image.
const PROGRAM: &str = "kyozon-linux";
/// Its command.
pub const COMMAND: &str = "confined-kernel";

impl Config {
    /// The kernel image at `image`, with 128 MiB of memory, for one thread. The program that runs it is `kyozon-linux`
    /// beside the image.
    pub fn new(image: impl AsRef<Path>) -> Self {
        let image = image.as_ref();
        Self {
            image: image.into(),
            program: vec![image.with_file_name(PROGRAM).into(), COMMAND.into()],
            memory_bytes: 128 << 20,
            options: Vec::new(),
            threads: 1,
            limit: Duration::from_secs(120),
            disks: Vec::new(),
            probe: None,
        }
    }

    /// The program that runs the kernel, and its first arguments. It must pass the others to
    /// [`child::run`](super::child::run).
    pub fn program(mut self, words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.program = words.into_iter().map(Into::into).collect();
        self
    }

    /// The kernel's memory in bytes, as of [`Config::memory`](crate::Config::memory).
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Adds an option to Linux's command line.
    pub fn option(mut self, option: &str) -> Self {
        self.options.push(option.into());
        self
    }

    /// Maximum number of threads at a time, including the one that boots.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// The time after which a call that is not complete ends the kernel: 120 seconds if this is not called.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Adds a disk, for writing if `write`. Linux numbers disks (`/dev/vda`) in this order.
    pub fn disk(mut self, disk: impl Into<Image>, write: bool) -> Self {
        self.disks.push((disk.into(), write));
        self
    }

    /// Makes the child perform a system call, number and arguments, after it confined itself. For tests of that.
    pub fn probe(mut self, call: [u64; 7]) -> Self {
        self.probe = Some(call);
        self
    }
}
