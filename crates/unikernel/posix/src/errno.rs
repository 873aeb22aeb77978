//! Linux's error numbers (include/uapi/asm-generic/errno.h), as answers.

use crate::Answer;

macro_rules! errors {
    ($($name:ident = $number:literal;)*) => {
        $(#[allow(missing_docs)] pub const $name: Answer = -$number;)*
    };
}

errors! {
    EPERM = 1;
    ENOENT = 2;
    ESRCH = 3;
    EINTR = 4;
    EIO = 5;
    EBADF = 9;
    ECHILD = 10;
    EAGAIN = 11;
    ENOMEM = 12;
    EFAULT = 14;
    EBUSY = 16;
    EEXIST = 17;
    ENODEV = 19;
    ENOTDIR = 20;
    EISDIR = 21;
    EINVAL = 22;
    ENFILE = 23;
    EMFILE = 24;
    ENOTTY = 25;
    EFBIG = 27;
    ENOSPC = 28;
    ESPIPE = 29;
    EPIPE = 32;
    ERANGE = 34;
    ENAMETOOLONG = 36;
    ENOSYS = 38;
    ENOTEMPTY = 39;
    ELOOP = 40;
    ENOTSOCK = 88;
    EAFNOSUPPORT = 97;
    ETIMEDOUT = 110;
    // Not for programs: the call begins again after a handler.
    RESTART = 512;
}
