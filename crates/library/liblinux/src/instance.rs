//! A kernel in this process.

use crate::calls::Calls;
use crate::confined::{self, Client, Confined};
use crate::fault::Registration;
use crate::memory::{Memory, View};
use crate::net::Network;
use crate::process::{Around, Log, Process};
use crate::thread::Thread;
use kyozon_abi::library::{LIBRARY_COMMAND_LINE_BYTES, LIBRARY_MEMORY_ALIGN, LIBRARY_MEMORY_MIN};
use kyozon_devices::bus::{Bus, Slot};
use kyozon_devices::mmio::Device;
use kyozon_devices::ram::Ram;
use kyozon_library_host::image::{BadImage, Image};
use kyozon_library_host::kernel::{Errno, Halted, Kernel, Record};
use std::ffi::CString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::{fmt, io};

/// Where devices' registers are: anywhere but in memory. Line 0 is the timer's.
const FIRST_DEVICE: Slot = Slot { address: 0xd000_0000, irq: 1 };

/// Options before those of the caller, which can set them to other values.
///
/// A disk is a file with a page cache of its own on the host, whose limits decide when the storage works. Writing back
/// early only copies from one cache to the other, on the CPU that the writer needs, so it begins later than Linux's
/// defaults of 10 % and 20 %. The rest of the memory is enough clean pages to reclaim.
///
/// A network device has sent a packet when the driver's call returns. An interrupt about that would only cost time.
const OPTIONS: &str =
    "sysctl.vm.dirty_background_ratio=40 sysctl.vm.dirty_ratio=60 virtio_net.napi_tx=0";

type AddDevice = Box<dyn FnOnce(&mut Bus<Ram>) -> io::Result<Slot> + Send>;

/// What to boot.
pub struct Config {
    image: PathBuf,
    file: Option<File>,
    memory_bytes: usize,
    command_line: String,
    log: Log,
    around: Option<Around>,
    devices: Vec<AddDevice>,
}

impl Config {
    /// The kernel image at `image`, with 128 MiB of memory, and nowhere for its log.
    pub fn new(image: impl AsRef<Path>) -> Self {
        Self {
            image: image.as_ref().into(),
            file: None,
            memory_bytes: 128 << 20,
            command_line: String::new(),
            log: Box::new(|_| ()),
            around: None,
            devices: Vec::new(),
        }
    }

    /// Reads the image from an open file. Its path is for messages.
    pub fn file(mut self, file: File) -> Self {
        self.file = Some(file);
        self
    }

    /// The kernel's memory in bytes, rounded up to whole 4 MiB. Host memory is taken when the kernel first uses it.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes.next_multiple_of(LIBRARY_MEMORY_ALIGN as usize);
        self
    }

    /// Adds an option to Linux's command line.
    pub fn option(mut self, option: &str) -> Self {
        if !self.command_line.is_empty() {
            self.command_line.push(' ');
        }
        self.command_line.push_str(option);
        self
    }

    /// Adds a device. Linux numbers disks (`/dev/vda`) and ports (`eth0`) in this order.
    pub fn device(mut self, device: impl Device<Ram> + 'static) -> Self {
        self.devices.push(Box::new(move |bus| bus.add(device)));
        self
    }

    /// What surrounds each call of the kernel to this process.
    pub fn around(mut self, around: Around) -> Self {
        self.around = Some(around);
        self
    }

    /// Where the kernel's log goes.
    pub fn log(mut self, log: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        self.log = Box::new(log);
        self
    }
}

/// Why a kernel does not boot, or does not halt.
#[derive(Debug)]
pub enum Error {
    /// A file of the host.
    File(PathBuf, io::Error),
    /// The image is none.
    Image(PathBuf, BadImage),
    /// The host refuses memory, threads or signal handlers.
    Host(io::Error),
    /// Too little memory, a command line that is too long.
    Config(String),
    /// The kernel refuses.
    Kernel(Errno),
    /// The kernel panicked. The log has the reason.
    Panicked,
    /// The process of a confined kernel ended, or was ended. The text says why.
    Ended(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Image(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Host(error) => write!(f, "the host refuses: {error}"),
            Self::Config(why) | Self::Ended(why) => f.write_str(why),
            Self::Kernel(errno) => {
                write!(f, "the kernel refuses: {}", io::Error::from_raw_os_error(errno.0))
            }
            Self::Panicked => f.write_str("the kernel panicked; its log has the reason"),
        }
    }
}

impl std::error::Error for Error {}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

/// What lives as long as any thread of a kernel. Fields are dropped in this order.
pub(crate) struct Shared {
    service: Mutex<Option<JoinHandle<()>>>,
    _faults: Registration,
    pub(crate) kernel: Kernel<Process>,
    _memory: Memory,
}

/// A running kernel. Dropping it does not halt the kernel while threads exist.
#[derive(Clone)]
pub struct Instance(pub(crate) Arc<Shared>);

/// A kernel that is ready to boot. Everything that booting and running need of the system has been taken: files, memory
/// with code, threads. A process may give them up in between.
pub struct Prepared {
    shared: Arc<Shared>,
    go: mpsc::Sender<()>,
}

impl Prepared {
    /// Maps a kernel, and starts the thread that keeps its time.
    pub fn new(config: Config) -> Result<Self, Error> {
        let path = config.image;
        let at = |error| Error::File(path.clone(), error);
        let file = config.file.map_or_else(|| File::open(&path), Ok).map_err(at)?;
        let view = View::map(&file).map_err(at)?;
        let image = Image::parse(view.bytes());
        let image = image.map_err(|error| Error::Image(path.clone(), error))?;
        drop(view);
        let least = LIBRARY_MEMORY_MIN.max(2 * image.bytes);
        if (config.memory_bytes as u64) < least {
            let (has, least) = (config.memory_bytes >> 20, least.div_ceil(1 << 20));
            return Err(Error::Config(format!(
                "the kernel gets {has} MiB of memory, but needs at least {least}"
            )));
        }
        let memory = Memory::map(&file, &image, config.memory_bytes).map_err(Error::Host)?;
        let interrupt = Arc::new(OnceLock::<Interrupt>::new());
        let bus = bus(&memory, interrupt.clone(), config.devices).map_err(Error::Host)?;
        let command_line = format!("{} {OPTIONS} {}", bus.command_line(), config.command_line);
        if command_line.len() >= LIBRARY_COMMAND_LINE_BYTES {
            let most = LIBRARY_COMMAND_LINE_BYTES - 1;
            return Err(Error::Config(format!(
                "the kernel's command line is longer than {most} bytes"
            )));
        }
        let command_line = CString::new(command_line)
            .map_err(|_| Error::Config("the kernel's command line contains a zero byte".into()))?;
        let host = Process::new(config.log, bus, config.around);
        let seed = seed().map_err(Error::Host)?;
        // SAFETY: Memory::map placed and relocated the image; the memory lives in Shared, behind the kernel.
        let kernel = unsafe {
            Kernel::new(host, memory.start(), memory.bytes(), image.entry, command_line, seed)
        }?;
        interrupt.get_or_init(|| kernel.interrupt());
        let range = memory.start() as usize..memory.start() as usize + image.bytes as usize;
        let faults = Registration::new(range, kernel.fixup()).map_err(Error::Host)?;
        let shared = Arc::new(Shared {
            service: Mutex::new(None),
            _faults: faults,
            kernel,
            _memory: memory,
        });
        let go = start_service(&shared).map_err(Error::Host)?;
        Ok(Self { shared, go })
    }

    /// Boots, and attaches the calling thread.
    pub fn boot(self) -> Result<(Instance, Thread), Error> {
        let Self { shared, go } = self;
        let record = Record::default();
        let started = shared.kernel.start(&record);
        match shared.kernel.halted() {
            Halted::Running => started?,
            _ => return Err(Error::Panicked),
        };
        // The thread waits for it.
        let _ = go.send(());
        let thread = Thread::attached(shared.clone(), record);
        for (kind, path, rights) in
            [("devtmpfs", "/dev", 0o755), ("proc", "/proc", 0o555), ("sysfs", "/sys", 0o555)]
        {
            let path = Path::new(path);
            // The root file system has some of them already.
            let _ = thread.mkdir(path, rights);
            thread.mount("none", path, kind, 0, "")?;
        }
        thread.set_link("lo", true).map_err(|error| Error::Kernel(error.errno))?;
        Ok((Instance(shared), thread))
    }
}

/// Starts the thread that keeps a kernel's time, once it has booted. Returns when the thread waits for that.
fn start_service(shared: &Arc<Shared>) -> io::Result<mpsc::Sender<()>> {
    let (go, booted) = mpsc::channel();
    let (ready, started) = mpsc::channel();
    let kernel = shared.clone();
    let service = std::thread::Builder::new().name("linux-time".into()).spawn(move || {
        // The receiver waits for it.
        let _ = ready.send(());
        if booted.recv().is_ok() {
            kernel.kernel.service();
        }
    })?;
    started.recv().map_err(io::Error::other)?;
    *shared.service.lock().expect("no panic while locked") = Some(service);
    Ok(go)
}

impl Instance {
    /// Boots a kernel in this process, and attaches the calling thread. The root file system is empty but for `/dev`,
    /// `/proc` and `/sys`. The loopback interface is up; [`Network`] sets up others.
    pub fn in_process(config: Config) -> Result<(Self, Thread), Error> {
        Prepared::new(config)?.boot()
    }

    /// Boots a kernel in a process of its own, which has given up everything that the kernel does not need.
    pub fn confined(config: confined::Config) -> Result<(Confined, Client), Error> {
        Confined::start(config)
    }

    /// Attaches the calling thread, which gets a task: a thread of init, with init's files.
    pub fn attach(&self) -> Result<Thread, Error> {
        let record = Record::default();
        self.0.kernel.attach(&record)?;
        Ok(Thread::attached(self.0.clone(), record))
    }

    /// How the kernel ended, if it did.
    pub fn halted(&self) -> Halted {
        self.0.kernel.halted()
    }

    /// Writes everything back and halts. System calls of other threads fail with ESHUTDOWN; the kernel's memory is
    /// freed with the last of them.
    pub fn halt(self, thread: Thread) -> Result<(), Error> {
        /// Numbers of reboot(2).
        const MAGIC: [u64; 3] = [0xfee1_dead, 672_274_793, 0x4321_fedc];
        // SAFETY: neither call takes an address.
        unsafe {
            thread.syscall(libc::SYS_sync, [0; 6]);
            thread.syscall(libc::SYS_reboot, [MAGIC[0], MAGIC[1], MAGIC[2], 0, 0, 0]);
        }
        drop(thread);
        if let Some(service) = self.0.service.lock().expect("no panic while locked").take() {
            service
                .join()
                .map_err(|_| Error::Host(io::Error::other("the kernel's time keeper panicked")))?;
        }
        match self.halted() {
            Halted::PoweredOff => Ok(()),
            Halted::Panicked => Err(Error::Panicked),
            Halted::Running => Err(Error::Config("the kernel did not halt".into())),
        }
    }
}

type Interrupt = extern "sysv64" fn(u32);

/// The devices. They raise interrupts as soon as the kernel's function is known; before, no driver runs.
fn bus(
    memory: &Memory,
    interrupt: Arc<OnceLock<Interrupt>>,
    devices: Vec<AddDevice>,
) -> io::Result<Bus<Ram>> {
    // SAFETY: the kernel's memory outlives the bus: both belong to Shared, and the bus to the kernel's host, which is
    // dropped first. This process makes no references to it.
    let ram = unsafe { Ram::new(memory.start(), memory.bytes()) };
    let raise = move |line| {
        if let Some(interrupt) = interrupt.get() {
            interrupt(line);
        }
    };
    let mut bus = Bus::new(ram, FIRST_DEVICE, Arc::new(raise))?;
    for add in devices {
        add(&mut bus)?;
    }
    Ok(bus)
}

fn seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    // SAFETY: the buffer is valid.
    let got = unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), 0) };
    if got == seed.len() as isize {
        Ok(seed)
    } else {
        Err(io::Error::last_os_error())
    }
}
