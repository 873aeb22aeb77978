//! A program's side of the interface: its descriptors, and the dispatch of its calls.

use crate::function::{Function, PARAMETERS};
use crate::host::Host;
use crate::memory::Buffer;
use crate::poll::Subscription;
use crate::process::proc_raise;
use crate::table::{Entry, Table};
use crate::types::Errno;
use crate::walk::{Path, Walk};

/// Most buffers of one call.
pub const BUFFERS: usize = 1024;
/// Most subscriptions of one `poll_oneoff`.
pub const SUBSCRIPTIONS: usize = 256;

/// Room for what a call works on: at most 33 KiB, with contents only during a call.
pub struct Scratch {
    pub(crate) paths: [Path; 2],
    pub(crate) buffers: [Buffer; BUFFERS],
    pub(crate) subscriptions: [Subscription; SUBSCRIPTIONS],
}

const _: () = assert!(size_of::<Scratch>() <= 33 << 10);

impl Scratch {
    /// Empty room.
    pub const fn new() -> Scratch {
        Scratch {
            paths: [const { Path::new() }; 2],
            buffers: [Buffer { at: 0, bytes: 0 }; BUFFERS],
            subscriptions: [Subscription::NONE; SUBSCRIPTIONS],
        }
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

/// The memory that the interface uses. It allocates none.
pub struct Storage<'a, T> {
    /// One place for each descriptor. `None` is free; what else is there, the program finds at this number.
    pub descriptors: &'a mut [Option<Entry<T>>],
    /// For each of the two paths of a call, how deep it may go below the directory it starts in. All are `None`.
    pub entered: [&'a mut [Option<T>]; 2],
    /// Room for what a call works on.
    pub scratch: &'a mut Scratch,
}

/// What a program is told of how it was started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Program<'a> {
    /// Its arguments, its name first. None has a zero byte.
    pub arguments: &'a [&'a [u8]],
    /// Its environment, as `name=value`. None has a zero byte.
    pub environment: &'a [&'a [u8]],
    /// The names of the directories that it is given.
    pub preopens: &'a [&'a [u8]],
}

/// The program ends with this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit(pub u32);

/// The interface for one program.
pub struct Wasi<'a, H: Host> {
    pub(crate) host: H,
    pub(crate) table: Table<'a, H::Handle>,
    pub(crate) walks: [Walk<'a, H::Handle>; 2],
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) program: Program<'a>,
}

/// The arguments of a call. The upper half of a 32-bit one is not looked at: a program may leave anything there.
struct Arguments<'a>(&'a [u64; PARAMETERS]);

impl Arguments<'_> {
    fn word(&self, n: usize) -> u32 {
        self.0[n] as u32
    }

    fn long(&self, n: usize) -> u64 {
        self.0[n]
    }
}

impl<'a, H: Host> Wasi<'a, H> {
    /// The interface for a program that has these descriptors.
    pub fn new(host: H, storage: Storage<'a, H::Handle>, program: Program<'a>) -> Wasi<'a, H> {
        let [first, second] = storage.entered;
        Wasi {
            host,
            table: Table::new(storage.descriptors),
            walks: [Walk::new(first), Walk::new(second)],
            scratch: storage.scratch,
            program,
        }
    }

    /// The host.
    pub fn host(&mut self) -> &mut H {
        &mut self.host
    }

    /// A descriptor of the program.
    pub fn descriptor(&self, fd: u32) -> Option<&Entry<H::Handle>> {
        self.table.get(fd).ok()
    }

    /// Calls a function. `arguments` are the parameters of its Wasm type; further ones are ignored. Returns the
    /// program's result: the number of an [`Errno`], or 0.
    ///
    /// # Errors
    ///
    /// The program wants to end.
    pub fn call(
        &mut self,
        function: Function,
        arguments: &[u64; PARAMETERS],
        memory: &mut H::Memory,
    ) -> Result<u16, Exit> {
        let result = match function {
            Function::ProcExit => return Err(Exit(arguments[0] as u32)),
            Function::ProcRaise => proc_raise(arguments[0] as u32)?,
            _ => self.dispatch(function, &Arguments(arguments), memory),
        };
        Ok(result.map_or_else(|error| error as u16, |()| 0))
    }

    fn dispatch(
        &mut self,
        function: Function,
        a: &Arguments<'_>,
        m: &mut H::Memory,
    ) -> Result<(), Errno> {
        let (w, l) = (|n| a.word(n), |n| a.long(n));
        let result = match function {
            Function::ArgsGet => self.strings_get(self.program.arguments, w(0), w(1), m),
            Function::ArgsSizesGet => self.sizes_get(self.program.arguments, w(0), w(1), m),
            Function::EnvironGet => self.strings_get(self.program.environment, w(0), w(1), m),
            Function::EnvironSizesGet => self.sizes_get(self.program.environment, w(0), w(1), m),
            Function::ClockResGet => self.clock_res_get(w(0), w(1), m),
            Function::ClockTimeGet => self.clock_time_get(w(0), w(2), m),
            Function::FdAdvise => self.fd_advise(w(0), l(1), l(2), w(3)),
            Function::FdAllocate => self.fd_allocate(w(0), l(1), l(2)),
            Function::FdClose => self.fd_close(w(0)),
            Function::FdDatasync => self.fd_sync(w(0), true),
            Function::FdFdstatGet => self.fd_fdstat_get(w(0), w(1), m),
            Function::FdFdstatSetFlags => self.fd_fdstat_set_flags(w(0), w(1)),
            Function::FdFdstatSetRights => self.fd_fdstat_set_rights(w(0), l(1), l(2)),
            Function::FdFilestatGet => self.fd_filestat_get(w(0), w(1), m),
            Function::FdFilestatSetSize => self.fd_filestat_set_size(w(0), l(1)),
            Function::FdFilestatSetTimes => self.fd_filestat_set_times(w(0), l(1), l(2), w(3)),
            Function::FdPread => self.fd_read(w(0), w(1), w(2), Some(l(3)), w(4), m),
            Function::FdPrestatGet => self.fd_prestat_get(w(0), w(1), m),
            Function::FdPrestatDirName => self.fd_prestat_dir_name(w(0), w(1), w(2), m),
            Function::FdPwrite => self.fd_write(w(0), w(1), w(2), Some(l(3)), w(4), m),
            Function::FdRead => self.fd_read(w(0), w(1), w(2), None, w(3), m),
            Function::FdReaddir => self.fd_readdir(w(0), w(1), w(2), l(3), w(4), m),
            Function::FdRenumber => self.fd_renumber(w(0), w(1)),
            Function::FdSeek => self.fd_seek(w(0), l(1) as i64, w(2), w(3), m),
            Function::FdSync => self.fd_sync(w(0), false),
            Function::FdTell => self.fd_tell(w(0), w(1), m),
            Function::FdWrite => self.fd_write(w(0), w(1), w(2), None, w(3), m),
            Function::PathCreateDirectory => self.path_create_directory(w(0), w(1), w(2), m),
            Function::PathFilestatGet => self.path_filestat_get(w(0), w(1), w(2), w(3), w(4), m),
            Function::PathFilestatSetTimes => {
                self.path_filestat_set_times(w(0), w(1), w(2), w(3), (l(4), l(5), w(6)), m)
            }
            Function::PathLink => self.path_link((w(0), w(2), w(3)), w(1), (w(4), w(5), w(6)), m),
            Function::PathOpen => {
                let rights = (l(5), l(6));
                self.path_open((w(0), w(2), w(3)), w(1), w(4), rights, w(7), w(8), m)
            }
            Function::PathReadlink => self.path_readlink((w(0), w(1), w(2)), w(3), w(4), w(5), m),
            Function::PathRemoveDirectory => self.path_remove_directory(w(0), w(1), w(2), m),
            Function::PathRename => self.path_rename((w(0), w(1), w(2)), (w(3), w(4), w(5)), m),
            Function::PathSymlink => self.path_symlink(w(0), w(1), (w(2), w(3), w(4)), m),
            Function::PathUnlinkFile => self.path_unlink_file(w(0), w(1), w(2), m),
            Function::PollOneoff => self.poll_oneoff(w(0), w(1), w(2), w(3), m),
            // Handled by the caller.
            Function::ProcExit | Function::ProcRaise => Err(Errno::Nosys),
            Function::SchedYield => self.host.yield_now(),
            Function::RandomGet => self.random_get(w(0), w(1), m),
            Function::SockAccept => self.sock_accept(w(0), w(1), w(2), m),
            Function::SockRecv => self.sock_recv(w(0), (w(1), w(2)), w(3), w(4), w(5), m),
            Function::SockSend => self.sock_send(w(0), (w(1), w(2)), w(3), w(4), m),
            Function::SockShutdown => self.sock_shutdown(w(0), w(1)),
        };
        for walk in &mut self.walks {
            walk.leave();
        }
        result
    }
}
