//! The experiments as a unikernel. Arguments: those of [`kyozon_shm::run`].
#![no_std]
#![no_main]

kyozon_portable::program!(kyozon_shm::run);
