//! A machine without a kernel, for tests.

/// Images as the monitor's own tests make them.
#[allow(dead_code)]
#[path = "../../colocation/monitor/src/fake/image.rs"]
pub mod image;
pub mod kernel;

use crate::machine::{Machine, Now};
use anyhow::{bail, Result};
use kyozon_abi::device::{Load, Status, DEVICE_VERSION, STATE_EMPTY, STATE_RUNNING};
use kyozon_abi::events::{EVENTS_VERSION, RECORDS_OFFSET};
use kyozon_channel::memory;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An event ring that the test writes: 1000 ticks per millisecond, loaded at 1000.
#[derive(Clone)]
pub struct Ring(Rc<[AtomicU64]>);

impl Default for Ring {
    fn default() -> Self {
        Self::new(4)
    }
}

impl Ring {
    pub fn new(records: u64) -> Self {
        let ring =
            Self((0..RECORDS_OFFSET / 8 + 32 * records).map(|_| AtomicU64::new(0)).collect());
        ring.set(0, records << 32 | u64::from(EVENTS_VERSION));
        ring.set_khz(1000);
        ring.set(3, 1000);
        ring
    }

    pub fn set(&self, word: usize, value: u64) {
        self.0[word].store(value, Relaxed);
    }

    pub fn set_khz(&self, khz: u64) {
        self.set(2, khz);
    }
}

impl memory::Load for Ring {
    fn words(&self) -> usize {
        self.0.len()
    }
    fn load(&self, at: usize) -> u64 {
        self.0.load(at)
    }
    fn acquire(&self) {
        self.0.acquire();
    }
}

impl memory::Store for Ring {
    fn store(&self, at: usize, value: u64) {
        self.0.store(at, value);
    }
    fn release(&self) {
        self.0.release();
    }
}

/// A change of the ring during a pause.
pub type Pause = Box<dyn FnMut(&Ring)>;

/// A machine that logs the calls.
#[derive(Default)]
pub struct Fake {
    pub module: bool,
    pub loaded: bool,
    /// Whether `load` fails.
    pub refuses: bool,
    /// Whether `status` fails.
    pub blind: bool,
    /// The load's key.
    pub key: Vec<u8>,
    pub log: Vec<&'static str>,
    /// Readable files other than images.
    pub files: kernel::Files,
    /// The load's data for the cokernel.
    pub data: Vec<u8>,
    /// The load's number of images, memory and parameter.
    pub images: u64,
    pub memory: u64,
    pub parameter: u64,
    pub ring: Ring,
    pub now: Now,
    /// One entry per pause; after the last, the reader is gone.
    pub script: Vec<Pause>,
    pub pauses: usize,
}

impl Machine for Fake {
    type Ring = Ring;
    fn release(&self) -> String {
        "6.99-none".into()
    }
    fn has_module(&self) -> Result<bool> {
        Ok(self.module)
    }
    fn insert(&mut self, _: &Path) -> Result<()> {
        self.log.push("insert");
        self.module = true;
        Ok(())
    }
    fn remove(&mut self) -> Result<()> {
        assert!(!self.loaded, "the module is in use");
        self.log.push("remove");
        self.module = false;
        Ok(())
    }
    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        if path.ends_with("missing") {
            bail!("{}: no such file", path.display());
        }
        self.files.read(path)
    }
    fn read_head(&self, path: &Path, bytes: u64) -> Result<Vec<u8>> {
        let mut head = self.read(path)?;
        head.truncate(usize::try_from(bytes)?);
        Ok(head)
    }
    #[allow(unsafe_code)]
    fn load(&mut self, request: &mut Load) -> Result<()> {
        self.log.push("load");
        let bytes = request.images.map(|image| image.bytes);
        assert!((2..=3).contains(&request.image_count));
        assert!(bytes
            .iter()
            .zip(0..)
            .all(|(bytes, i)| *bytes == if i < request.image_count { 10 } else { 0 }));
        (self.images, self.memory) = (request.image_count, request.memory_bytes);
        self.parameter = request.parameter;
        if self.refuses {
            bail!("interrupt remapping is active");
        }
        // SAFETY: the caller keeps it alive across this call.
        let data = (request.data.bytes > 0).then(|| unsafe {
            std::slice::from_raw_parts(
                request.data.address as *const u8,
                request.data.bytes as usize,
            )
        });
        self.data = data.unwrap_or_default().to_vec();
        self.key = if request.key.bytes == 0 {
            Vec::new()
        } else {
            // SAFETY: as above.
            unsafe {
                std::slice::from_raw_parts(
                    request.key.address as *const u8,
                    request.key.bytes as usize,
                )
            }
            .to_vec()
        };
        self.loaded = true;
        Ok(())
    }
    fn unload(&mut self, key: &[u8]) -> Result<()> {
        if key != self.key {
            bail!("the wall is locked");
        }
        self.log.push("unload");
        self.loaded = false;
        Ok(())
    }
    fn status(&mut self) -> Result<Status> {
        if self.blind {
            bail!("no status");
        }
        let state = if self.loaded { STATE_RUNNING } else { STATE_EMPTY };
        Ok(Status { version: DEVICE_VERSION, state, ..crate::report::tests::status() })
    }
    fn events(&mut self, _: u64) -> Result<Option<Ring>> {
        Ok(Some(self.ring.clone()))
    }
    fn now(&self) -> Now {
        self.now
    }
    fn pause(&mut self) -> bool {
        self.pauses += 1;
        match self.script.get_mut(self.pauses - 1) {
            Some(happens) => happens(&self.ring),
            None => return false,
        }
        true
    }
}
