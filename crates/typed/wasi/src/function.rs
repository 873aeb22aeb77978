//! The functions of the interface with their Wasm signatures: what imports are bound by.

/// The module name of imports.
pub const MODULE: &str = "wasi_snapshot_preview1";

/// Most parameters that a function has.
pub const PARAMETERS: usize = 9;

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
}

/// Name and type of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The name of the import.
    pub name: &'static str,
    /// The types of its parameters.
    pub parameters: &'static [Type],
    /// Whether it has a result: one [`Type::I32`], the error or 0. Only `proc_exit`, which does not return, has none.
    pub result: bool,
}

macro_rules! functions {
    ($($variant:ident $name:literal ($($parameter:ident)*) $result:literal)*) => {
        /// A function. Its number is its place in [`FUNCTIONS`]; numbers do not change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Function {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        /// All functions, in the order of their numbers.
        pub const FUNCTIONS: &[Function] = &[$(Function::$variant,)*];

        impl Function {
            /// Its name and type.
            pub const fn signature(self) -> Signature {
                match self {
                    $(Function::$variant => Signature {
                        name: $name,
                        parameters: &[$(Type::$parameter,)*],
                        result: $result,
                    },)*
                }
            }
        }
    };
}

functions! {
    ArgsGet "args_get" (I32 I32) true
    ArgsSizesGet "args_sizes_get" (I32 I32) true
    EnvironGet "environ_get" (I32 I32) true
    EnvironSizesGet "environ_sizes_get" (I32 I32) true
    ClockResGet "clock_res_get" (I32 I32) true
    ClockTimeGet "clock_time_get" (I32 I64 I32) true
    FdAdvise "fd_advise" (I32 I64 I64 I32) true
    FdAllocate "fd_allocate" (I32 I64 I64) true
    FdClose "fd_close" (I32) true
    FdDatasync "fd_datasync" (I32) true
    FdFdstatGet "fd_fdstat_get" (I32 I32) true
    FdFdstatSetFlags "fd_fdstat_set_flags" (I32 I32) true
    FdFdstatSetRights "fd_fdstat_set_rights" (I32 I64 I64) true
    FdFilestatGet "fd_filestat_get" (I32 I32) true
    FdFilestatSetSize "fd_filestat_set_size" (I32 I64) true
    FdFilestatSetTimes "fd_filestat_set_times" (I32 I64 I64 I32) true
    FdPread "fd_pread" (I32 I32 I32 I64 I32) true
    FdPrestatGet "fd_prestat_get" (I32 I32) true
    FdPrestatDirName "fd_prestat_dir_name" (I32 I32 I32) true
    FdPwrite "fd_pwrite" (I32 I32 I32 I64 I32) true
    FdRead "fd_read" (I32 I32 I32 I32) true
    FdReaddir "fd_readdir" (I32 I32 I32 I64 I32) true
    FdRenumber "fd_renumber" (I32 I32) true
    FdSeek "fd_seek" (I32 I64 I32 I32) true
    FdSync "fd_sync" (I32) true
    FdTell "fd_tell" (I32 I32) true
    FdWrite "fd_write" (I32 I32 I32 I32) true
    PathCreateDirectory "path_create_directory" (I32 I32 I32) true
    PathFilestatGet "path_filestat_get" (I32 I32 I32 I32 I32) true
    PathFilestatSetTimes "path_filestat_set_times" (I32 I32 I32 I32 I64 I64 I32) true
    PathLink "path_link" (I32 I32 I32 I32 I32 I32 I32) true
    PathOpen "path_open" (I32 I32 I32 I32 I32 I64 I64 I32 I32) true
    PathReadlink "path_readlink" (I32 I32 I32 I32 I32 I32) true
    PathRemoveDirectory "path_remove_directory" (I32 I32 I32) true
    PathRename "path_rename" (I32 I32 I32 I32 I32 I32) true
    PathSymlink "path_symlink" (I32 I32 I32 I32 I32) true
    PathUnlinkFile "path_unlink_file" (I32 I32 I32) true
    PollOneoff "poll_oneoff" (I32 I32 I32 I32) true
    ProcExit "proc_exit" (I32) false
    ProcRaise "proc_raise" (I32) true
    SchedYield "sched_yield" () true
    RandomGet "random_get" (I32 I32) true
    SockAccept "sock_accept" (I32 I32 I32) true
    SockRecv "sock_recv" (I32 I32 I32 I32 I32 I32) true
    SockSend "sock_send" (I32 I32 I32 I32 I32) true
    SockShutdown "sock_shutdown" (I32 I32) true
}

impl Function {
    /// The function of this number.
    pub fn from_number(number: usize) -> Option<Function> {
        FUNCTIONS.get(number).copied()
    }

    /// The function that an import of [`MODULE`] names.
    pub fn by_name(name: &str) -> Option<Function> {
        FUNCTIONS.iter().copied().find(|function| function.signature().name == name)
    }
}
