//! Machines that have booted: a guest starts from the state of one like it, instead of booting itself.

use crate::cache;
use crate::emulator::complaints;
use crate::guest::Guest;
use crate::spec::Spec;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A machine whose agent waits for its first request.
#[derive(Debug)]
pub struct State {
    /// QEMU's migration stream.
    pub file: PathBuf,
    /// Time-stamp counter at the agent's first instruction.
    pub booted_tsc: u64,
}

/// Held while the machine boots; none before.
type Machine = Arc<Mutex<Option<Boot>>>;

/// What became of the boot of a machine.
#[derive(Debug, Clone)]
enum Boot {
    Saved(Arc<State>),
    /// Its kernel complained, which a test may expect: each of its guests boots itself.
    Complained,
}

/// The machines of one run of the suite, by QEMU's arguments. Dropping the handle removes their states.
#[derive(Debug)]
pub struct Booted {
    folder: tempfile::TempDir,
    machines: Mutex<HashMap<Vec<String>, Machine>>,
}

impl Booted {
    /// No machine yet.
    pub fn new() -> Result<Self> {
        Ok(Self { folder: cache::scratch()?, machines: Mutex::default() })
    }

    /// A guest of `spec`. One that few others are like boots itself.
    pub fn guest(&self, spec: &Spec) -> Result<Guest> {
        if !spec.is_common() {
            return Guest::boot(spec);
        }
        match self.boot(spec)? {
            Boot::Saved(state) => Guest::resume(spec, &state),
            Boot::Complained => Guest::boot(spec),
        }
    }

    /// Boots the machine of `spec` unless one has; others that need the same wait.
    fn boot(&self, spec: &Spec) -> Result<Boot> {
        // The initramfs has no files that differ from one guest to another.
        let arguments = Guest::arguments(spec, Path::new("initrd"))?;
        let (number, machine) = {
            let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
            let number = machines.len();
            (number, Arc::clone(machines.entry(arguments).or_default()))
        };
        let mut boot = machine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(boot) = &*boot {
            return Ok(boot.clone());
        }
        let guest = Guest::boot(&Spec { files: Vec::new(), one_host_cpu: false, ..spec.clone() })?;
        let made = if complaints(&guest.serial(0)).is_empty() {
            let file = self.folder.path().join(number.to_string());
            guest.save(&file).with_context(|| format!("{}: save its state", spec.name()))?;
            Boot::Saved(Arc::new(State { file, booted_tsc: guest.booted_tsc }))
        } else {
            Boot::Complained
        };
        Ok(boot.insert(made).clone())
    }
}
