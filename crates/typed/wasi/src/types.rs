//! The numbers of the interface: errors, rights, flags and enumerations, as the witx files define them.

/// Defines an enumeration of the interface, with the conversion from a number.
macro_rules! enumeration {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $number:literal, $doc:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $(#[doc = $doc] $variant = $number,)*
        }

        impl $name {
            /// The value with this number.
            pub fn from_number(number: u32) -> Option<$name> {
                match number {
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

/// Defines a set of flags of the interface.
macro_rules! flags {
    ($(#[$meta:meta])* $name:ident: $repr:ty { $($flag:ident = $bit:literal, $doc:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub $repr);

        impl $name {
            $(#[doc = $doc] pub const $flag: $name = $name(1 << $bit);)*
            /// Every flag that the interface defines.
            pub const ALL: $name = $name($(1 << $bit)|*);

            /// The set of this number, if all its flags are defined.
            pub fn from_number(number: u64) -> Option<$name> {
                (number & !u64::from($name::ALL.0) == 0).then_some($name(number as $repr))
            }

            /// Whether all flags of `other` are in this set.
            pub const fn contains(self, other: $name) -> bool {
                other.0 & !self.0 == 0
            }

            /// Whether a flag is in both sets.
            pub const fn intersects(self, other: $name) -> bool {
                self.0 & other.0 != 0
            }

            /// The flags of either set.
            pub const fn or(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }

            /// The flags of both sets.
            pub const fn and(self, other: $name) -> $name {
                $name(self.0 & other.0)
            }

            /// The flags of this set that are not in the other.
            pub const fn without(self, other: $name) -> $name {
                $name(self.0 & !other.0)
            }
        }
    };
}

enumeration! {
    /// An error. A call that succeeds gives 0, which is none of these.
    Errno {
        TooBig = 1, "`2big`: argument list too long.";
        Acces = 2, "Permission denied.";
        Addrinuse = 3, "Address in use.";
        Addrnotavail = 4, "Address not available.";
        Afnosupport = 5, "Address family not supported.";
        Again = 6, "The operation would block.";
        Already = 7, "Connection already in progress.";
        Badf = 8, "Not an open descriptor.";
        Badmsg = 9, "Bad message.";
        Busy = 10, "Device or resource busy.";
        Canceled = 11, "Operation cancelled.";
        Child = 12, "No child processes.";
        Connaborted = 13, "Connection aborted.";
        Connrefused = 14, "Connection refused.";
        Connreset = 15, "Connection reset.";
        Deadlk = 16, "Resource deadlock would occur.";
        Destaddrreq = 17, "Destination address required.";
        Dom = 18, "Argument out of the function's domain.";
        Dquot = 19, "Quota exceeded.";
        Exist = 20, "File exists.";
        Fault = 21, "Address outside of the program's memory.";
        Fbig = 22, "File too large.";
        Hostunreach = 23, "Host is unreachable.";
        Idrm = 24, "Identifier removed.";
        Ilseq = 25, "Illegal byte sequence.";
        Inprogress = 26, "Operation in progress.";
        Intr = 27, "Interrupted.";
        Inval = 28, "Invalid argument.";
        Io = 29, "Input or output failed.";
        Isconn = 30, "Socket is connected.";
        Isdir = 31, "Is a directory.";
        Loop = 32, "Too many symbolic links.";
        Mfile = 33, "No descriptor is left.";
        Mlink = 34, "Too many links.";
        Msgsize = 35, "Message too large.";
        Multihop = 36, "Multihop attempted.";
        Nametoolong = 37, "Name too long.";
        Netdown = 38, "Network is down.";
        Netreset = 39, "Connection aborted by the network.";
        Netunreach = 40, "Network unreachable.";
        Nfile = 41, "Too many open files in the system.";
        Nobufs = 42, "No buffer space.";
        Nodev = 43, "No such device.";
        Noent = 44, "No such file or directory.";
        Noexec = 45, "Executable format error.";
        Nolck = 46, "No locks available.";
        Nolink = 47, "Link has been severed.";
        Nomem = 48, "Not enough memory.";
        Nomsg = 49, "No message of the type.";
        Noprotoopt = 50, "Protocol option not available.";
        Nospc = 51, "No space left on the device.";
        Nosys = 52, "Function not supported.";
        Notconn = 53, "Socket is not connected.";
        Notdir = 54, "Not a directory.";
        Notempty = 55, "Directory not empty.";
        Notrecoverable = 56, "State not recoverable.";
        Notsock = 57, "Not a socket.";
        Notsup = 58, "Not supported.";
        Notty = 59, "Inappropriate control operation.";
        Nxio = 60, "No such device or address.";
        Overflow = 61, "Value too large.";
        Ownerdead = 62, "Previous owner died.";
        Perm = 63, "Operation not permitted.";
        Pipe = 64, "Broken pipe.";
        Proto = 65, "Protocol error.";
        Protonosupport = 66, "Protocol not supported.";
        Prototype = 67, "Wrong protocol for the socket.";
        Range = 68, "Result too large.";
        Rofs = 69, "Read-only file system.";
        Spipe = 70, "Not seekable.";
        Srch = 71, "No such process.";
        Stale = 72, "Stale handle.";
        Timedout = 73, "Timed out.";
        Txtbsy = 74, "Text file busy.";
        Xdev = 75, "Link across devices.";
        Notcapable = 76, "The descriptor lacks a right, or a path leads out of its directory.";
    }
}

enumeration! {
    /// A clock.
    Clock {
        Realtime = 0, "Time since 1970.";
        Monotonic = 1, "Never set, never goes back.";
        ProcessCpu = 2, "Processor time of the process.";
        ThreadCpu = 3, "Processor time of the thread.";
    }
}

enumeration! {
    /// The type of a file or descriptor.
    FileType {
        Unknown = 0, "None of the others, such as a pipe.";
        BlockDevice = 1, "A block device.";
        CharacterDevice = 2, "A character device.";
        Directory = 3, "A directory.";
        RegularFile = 4, "A regular file.";
        SocketDgram = 5, "A datagram socket.";
        SocketStream = 6, "A byte-stream socket.";
        SymbolicLink = 7, "A symbolic link.";
    }
}

enumeration! {
    /// The position that an offset is relative to.
    Whence {
        Set = 0, "The start of the file.";
        Cur = 1, "The current offset.";
        End = 2, "The end of the file.";
    }
}

enumeration! {
    /// How a program is going to access a file.
    Advice {
        Normal = 0, "Nothing special.";
        Sequential = 1, "From low to high offsets.";
        Random = 2, "In random order.";
        Willneed = 3, "Soon.";
        Dontneed = 4, "Not soon.";
        Noreuse = 5, "Once.";
    }
}

enumeration! {
    /// A signal. 0, which is none, has no value here.
    Signal {
        Hup = 1, "Hangup.";
        Int = 2, "Interrupt.";
        Quit = 3, "Quit.";
        Ill = 4, "Illegal instruction.";
        Trap = 5, "Trap.";
        Abrt = 6, "Abort.";
        Bus = 7, "Bus error.";
        Fpe = 8, "Arithmetic error.";
        Kill = 9, "Kill.";
        Usr1 = 10, "User-defined.";
        Segv = 11, "Invalid memory access.";
        Usr2 = 12, "User-defined.";
        Pipe = 13, "Write to a pipe without reader.";
        Alrm = 14, "Alarm clock.";
        Term = 15, "Termination.";
        Chld = 16, "A child changed state.";
        Cont = 17, "Continue.";
        Stop = 18, "Stop.";
        Tstp = 19, "Stop from the terminal.";
        Ttin = 20, "Read by a background process.";
        Ttou = 21, "Write by a background process.";
        Urg = 22, "Urgent data.";
        Xcpu = 23, "Limit of processor time.";
        Xfsz = 24, "Limit of file size.";
        Vtalrm = 25, "Virtual timer.";
        Prof = 26, "Profiling timer.";
        Winch = 27, "Window changed.";
        Poll = 28, "Input or output possible.";
        Pwr = 29, "Power failure.";
        Sys = 30, "Bad system call.";
    }
}

flags! {
    /// What may be done by a descriptor. Without a right, a call fails with [`Errno::Notcapable`].
    Rights: u64 {
        FD_DATASYNC = 0, "`fd_datasync`, and `path_open` with [`FdFlags::DSYNC`].";
        FD_READ = 1, "`fd_read` and `sock_recv`; with `FD_SEEK`, `fd_pread`.";
        FD_SEEK = 2, "`fd_seek` and `fd_tell`.";
        FD_FDSTAT_SET_FLAGS = 3, "`fd_fdstat_set_flags`.";
        FD_SYNC = 4, "`fd_sync`, and `path_open` with [`FdFlags::RSYNC`] or [`FdFlags::SYNC`].";
        FD_TELL = 5, "`fd_tell`, and `fd_seek` that only asks for the offset.";
        FD_WRITE = 6, "`fd_write` and `sock_send`; with `FD_SEEK`, `fd_pwrite`.";
        FD_ADVISE = 7, "`fd_advise`.";
        FD_ALLOCATE = 8, "`fd_allocate`.";
        PATH_CREATE_DIRECTORY = 9, "`path_create_directory`.";
        PATH_CREATE_FILE = 10, "`path_open` with [`OpenFlags::CREAT`].";
        PATH_LINK_SOURCE = 11, "`path_link` from this directory.";
        PATH_LINK_TARGET = 12, "`path_link` to this directory.";
        PATH_OPEN = 13, "`path_open`.";
        FD_READDIR = 14, "`fd_readdir`.";
        PATH_READLINK = 15, "`path_readlink`.";
        PATH_RENAME_SOURCE = 16, "`path_rename` from this directory.";
        PATH_RENAME_TARGET = 17, "`path_rename` to this directory.";
        PATH_FILESTAT_GET = 18, "`path_filestat_get`.";
        PATH_FILESTAT_SET_SIZE = 19, "`path_open` with [`OpenFlags::TRUNC`].";
        PATH_FILESTAT_SET_TIMES = 20, "`path_filestat_set_times`.";
        FD_FILESTAT_GET = 21, "`fd_filestat_get`.";
        FD_FILESTAT_SET_SIZE = 22, "`fd_filestat_set_size`.";
        FD_FILESTAT_SET_TIMES = 23, "`fd_filestat_set_times`.";
        PATH_SYMLINK = 24, "`path_symlink`.";
        PATH_REMOVE_DIRECTORY = 25, "`path_remove_directory`.";
        PATH_UNLINK_FILE = 26, "`path_unlink_file`.";
        POLL_FD_READWRITE = 27, "`poll_oneoff`, together with `FD_READ` or `FD_WRITE`.";
        SOCK_SHUTDOWN = 28, "`sock_shutdown`.";
        SOCK_ACCEPT = 29, "`sock_accept`.";
    }
}

impl Rights {
    /// No right.
    pub const NONE: Rights = Rights(0);

    /// What a pipe has.
    pub const STREAM: Rights = Rights::FD_READ
        .or(Rights::FD_WRITE)
        .or(Rights::FD_DATASYNC)
        .or(Rights::FD_SYNC)
        .or(Rights::FD_FDSTAT_SET_FLAGS)
        .or(Rights::FD_FILESTAT_GET)
        .or(Rights::FD_FILESTAT_SET_TIMES)
        .or(Rights::POLL_FD_READWRITE);

    /// What a regular file or a device has.
    pub const FILE: Rights = Rights::STREAM
        .or(Rights::FD_SEEK)
        .or(Rights::FD_TELL)
        .or(Rights::FD_ADVISE)
        .or(Rights::FD_ALLOCATE)
        .or(Rights::FD_FILESTAT_SET_SIZE);

    /// What a directory has.
    pub const DIRECTORY: Rights = Rights::FD_DATASYNC
        .or(Rights::FD_SYNC)
        .or(Rights::FD_FDSTAT_SET_FLAGS)
        .or(Rights::FD_ADVISE)
        .or(Rights::PATH_CREATE_DIRECTORY)
        .or(Rights::PATH_CREATE_FILE)
        .or(Rights::PATH_LINK_SOURCE)
        .or(Rights::PATH_LINK_TARGET)
        .or(Rights::PATH_OPEN)
        .or(Rights::FD_READDIR)
        .or(Rights::PATH_READLINK)
        .or(Rights::PATH_RENAME_SOURCE)
        .or(Rights::PATH_RENAME_TARGET)
        .or(Rights::PATH_FILESTAT_GET)
        .or(Rights::PATH_FILESTAT_SET_SIZE)
        .or(Rights::PATH_FILESTAT_SET_TIMES)
        .or(Rights::FD_FILESTAT_GET)
        .or(Rights::FD_FILESTAT_SET_TIMES)
        .or(Rights::PATH_SYMLINK)
        .or(Rights::PATH_REMOVE_DIRECTORY)
        .or(Rights::PATH_UNLINK_FILE)
        .or(Rights::POLL_FD_READWRITE);

    /// What a socket has.
    pub const SOCKET: Rights = Rights::FD_READ
        .or(Rights::FD_WRITE)
        .or(Rights::FD_FDSTAT_SET_FLAGS)
        .or(Rights::FD_FILESTAT_GET)
        .or(Rights::POLL_FD_READWRITE)
        .or(Rights::SOCK_SHUTDOWN)
        .or(Rights::SOCK_ACCEPT);

    /// What changes nothing: the rights of a directory that a program may only read, and of what is below it.
    pub const READ_ONLY: Rights = Rights::FD_READ
        .or(Rights::FD_SEEK)
        .or(Rights::FD_TELL)
        .or(Rights::FD_FDSTAT_SET_FLAGS)
        .or(Rights::FD_ADVISE)
        .or(Rights::PATH_OPEN)
        .or(Rights::FD_READDIR)
        .or(Rights::PATH_READLINK)
        .or(Rights::PATH_FILESTAT_GET)
        .or(Rights::FD_FILESTAT_GET)
        .or(Rights::POLL_FD_READWRITE);

    /// The rights that mean something for a descriptor of this type.
    pub const fn of(kind: FileType) -> Rights {
        match kind {
            FileType::Directory => Rights::DIRECTORY,
            FileType::SocketDgram | FileType::SocketStream => Rights::SOCKET,
            FileType::Unknown | FileType::SymbolicLink => Rights::STREAM,
            FileType::RegularFile | FileType::BlockDevice | FileType::CharacterDevice => {
                Rights::FILE
            }
        }
    }
}

flags! {
    /// Flags of a descriptor.
    FdFlags: u16 {
        APPEND = 0, "Data is always appended to the file.";
        DSYNC = 1, "A write returns after its data is on the device.";
        NONBLOCK = 2, "Calls fail with [`Errno::Again`] instead of waiting.";
        RSYNC = 3, "A read returns after what it depends on is on the device.";
        SYNC = 4, "A write returns after data and attributes are on the device.";
    }
}

flags! {
    /// Flags of `path_open`.
    OpenFlags: u16 {
        CREAT = 0, "Create the file if it does not exist.";
        DIRECTORY = 1, "Fail if it is not a directory.";
        EXCL = 2, "Fail if it exists.";
        TRUNC = 3, "Truncate it to no bytes.";
    }
}

flags! {
    /// How a path is resolved.
    LookupFlags: u32 {
        SYMLINK_FOLLOW = 0, "If the path names a symbolic link, its target is meant.";
    }
}

flags! {
    /// Which times to set.
    TimeFlags: u16 {
        ATIM = 0, "Time of access, to a value.";
        ATIM_NOW = 1, "Time of access, to now.";
        MTIM = 2, "Time of modification, to a value.";
        MTIM_NOW = 3, "Time of modification, to now.";
    }
}

flags! {
    /// Flags of `sock_recv`.
    ReceiveFlags: u16 {
        PEEK = 0, "Leave the data in the queue.";
        WAITALL = 1, "Wait until the buffers are full.";
    }
}

flags! {
    /// Which directions `sock_shutdown` closes.
    ShutdownFlags: u8 {
        RD = 0, "No more data is received.";
        WR = 1, "No more data is sent.";
    }
}
