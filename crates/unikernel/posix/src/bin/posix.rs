//! The image that `kyozon run` gives to a program of the C library.
#![no_std]
#![no_main]

kyozon_unikernel::main!(kyozon_posix::entry::run);
