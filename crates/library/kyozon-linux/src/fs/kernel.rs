//! A kernel, in this process or confined.

use anyhow::{anyhow, Context, Result};
use kyozon_devices::block::{Block, BlockDevice, Errors};
use kyozon_devices::disk::{Image, Qcow2Disk};
use liblinux::calls::Calls;
use liblinux::confined::{self, Client};
use liblinux::{Config, Confined, Error, Instance, Thread};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the kernel logs: warnings and worse. Some file systems give the reason of an error as a warning.
const OPTIONS: &str = "loglevel=5";
/// Bytes of the log of a kernel in this process that are kept for a message.
const MAX_LOG: usize = 1 << 16;

/// Disks, and whether the kernel may write to them.
pub type Disks = Vec<(Image, bool)>;

/// The log of a kernel in this process.
type Log = Arc<Mutex<Vec<u8>>>;

/// What to boot.
#[derive(Debug, Clone)]
pub struct Boot {
    /// Library Linux's image.
    pub linux: PathBuf,
    /// The limit for each call of a confined kernel; none for a kernel in this process.
    pub confined: Option<Duration>,
    /// Bytes of the kernel's memory. The host gives what is used.
    pub memory_bytes: usize,
    /// How many tasks can be attached, besides one for each image.
    pub tasks: usize,
}

/// Attaches tasks of a kernel to any thread.
#[derive(Clone)]
pub enum Tasks {
    /// In this process.
    InProcess(Instance),
    /// In a confined process.
    Confined(Confined),
}

impl Tasks {
    /// Attaches the calling thread.
    pub fn attach(&self) -> Result<Box<dyn Calls>, Error> {
        Ok(match self {
            Self::InProcess(instance) => Box::new(instance.attach()?),
            Self::Confined(kernel) => Box::new(kernel.attach()?),
        })
    }

    /// Waits until a confined kernel's process has ended, and says why unless it halted. For ever if the kernel is in
    /// this process.
    pub fn wait_for_death(&self) -> Option<String> {
        const LONG: Duration = Duration::from_secs(3600);
        loop {
            match self {
                Self::InProcess(_) => std::thread::sleep(LONG),
                Self::Confined(kernel) if kernel.wait(LONG) => return kernel.failure(),
                Self::Confined(_) => (),
            }
        }
    }
}

/// A kernel with a thread of its own. After [`halt`](Kernel::halt) it has none.
pub enum Kernel {
    /// In this process.
    InProcess {
        /// The kernel, and the thread that booted it.
        running: Option<(Instance, Thread)>,
        /// Its log.
        log: Log,
        /// Its disks' errors on the host.
        errors: Vec<Arc<Errors>>,
        /// Those that are qcow2, with their numbers.
        qcow2: Vec<(usize, Qcow2Disk)>,
    },
    /// In a confined process.
    Confined {
        /// The kernel.
        kernel: Confined,
        /// The thread that booted it.
        client: Option<Client>,
    },
}

impl Kernel {
    /// Boots in this process. Errors, here and later, name disks by their numbers: `disk0: `.
    pub fn in_process(boot: &Boot, disks: Disks) -> Result<Self> {
        let log = Log::default();
        let sink = log.clone();
        let mut config =
            Config::new(&boot.linux).option(OPTIONS).memory(boot.memory_bytes).log(move |text| {
                let mut log = sink.lock().unwrap_or_else(|e| e.into_inner());
                if log.len() < MAX_LOG {
                    log.extend_from_slice(text);
                }
            });
        let (mut errors, mut qcow2) = (Vec::new(), Vec::new());
        for (number, (disk, write)) in disks.into_iter().enumerate() {
            let opened = disk.disk(write)?;
            if let Some(disk) = opened.qcow2 {
                disk.check().with_context(|| format!("disk{number}"))?;
                qcow2.push((number, disk));
            }
            let block = Block::new(opened.disk, !write, &format!("disk{number}"))
                .extended()
                .ends_at_error();
            let device = BlockDevice::inline(block);
            errors.push(device.errors());
            config = config.device(device);
        }
        let running =
            Instance::in_process(config).map_err(|e| anyhow!("{e}: {}", last_line(&log)))?;
        Ok(Self::InProcess { running: Some(running), log, errors, qcow2 })
    }

    /// Boots in a confined process: this program again. A call that takes longer than `limit` ends the kernel.
    /// Besides `boot.tasks`, `images` tasks can be attached.
    pub fn confined(boot: &Boot, disks: Disks, images: usize, limit: Duration) -> Result<Self> {
        let mut config = confined::Config::new(&boot.linux)
            .program(["/proc/self/exe", confined::COMMAND])
            .option(OPTIONS)
            .memory(boot.memory_bytes)
            // The one that boots, and one in each image.
            .threads(1 + images + boot.tasks)
            .limit(limit);
        for (disk, write) in disks {
            config = config.disk(disk, write);
        }
        let (kernel, client) = Instance::confined(config)?;
        Ok(Self::Confined { kernel, client: Some(client) })
    }

    /// The system calls of the thread that booted.
    pub fn calls(&self) -> Result<&dyn Calls> {
        let calls: Option<&dyn Calls> = match self {
            Self::InProcess { running, .. } => running.as_ref().map(|(_, thread)| thread as _),
            Self::Confined { client, .. } => client.as_ref().map(|client| client as _),
        };
        calls.context("Linux has halted")
    }

    /// What attaches more tasks.
    pub fn tasks(&self) -> Result<Tasks> {
        Ok(match self {
            Self::InProcess { running, .. } => {
                let (instance, _) = running.as_ref().context("Linux has halted")?;
                Tasks::InProcess(instance.clone())
            }
            Self::Confined { kernel, .. } => Tasks::Confined(kernel.clone()),
        })
    }

    /// The last error that the host had with a disk.
    pub fn disk_error(&self, number: usize) -> Option<String> {
        match self {
            Self::InProcess { errors, .. } => errors.get(number)?.last().map(|e| e.to_string()),
            Self::Confined { client, .. } => client.as_ref()?.disk_error(number),
        }
    }

    /// Its log.
    pub fn log(&self) -> String {
        match self {
            Self::InProcess { log, .. } => {
                let log = log.lock().unwrap_or_else(|e| e.into_inner());
                String::from_utf8_lossy(&log).into_owned()
            }
            Self::Confined { kernel, .. } => kernel.log(),
        }
    }

    /// Writes everything back and halts.
    pub fn halt(&mut self) -> Result<(), Error> {
        match self {
            Self::InProcess { running, qcow2, .. } => match running.take() {
                Some((instance, thread)) => {
                    instance.halt(thread)?;
                    // Not every file system flushes its disk when it is unmounted.
                    qcow2.iter().try_for_each(|(number, disk)| {
                        let wrote = disk.write_back();
                        wrote.map_err(|e| Error::Ended(format!("disk{number}: {e}")))
                    })
                }
                None => Ok(()),
            },
            Self::Confined { kernel, client } => match client.take() {
                Some(client) => kernel.clone().halt(client),
                None => Ok(()),
            },
        }
    }

    /// Why a confined kernel's process ended before its time, once it has been halted.
    pub fn died(&self) -> Option<String> {
        match self {
            Self::InProcess { .. } => None,
            Self::Confined { kernel, .. } => kernel.failure(),
        }
    }
}

/// The last line that the kernel logged.
fn last_line(log: &Log) -> String {
    let log = log.lock().unwrap_or_else(|e| e.into_inner());
    let text = String::from_utf8_lossy(&log);
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}
