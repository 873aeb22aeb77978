//! The experiments as a unikernel. Arguments: as [`kyozon_shm::run`].
#![no_std]
#![no_main]

kyozon_portable::program!(kyozon_shm::run);
