//! Kernels for tests.

use liblinux::{Config, Instance, Thread};
use std::sync::{Arc, Mutex};

/// The kernel image.
pub fn config() -> Config {
    Config::new(std::env::var("KYOZON_LINUX").expect("KYOZON_LINUX names a kernel image"))
}

/// Boots a kernel. If it does not boot, the panic has its log.
pub fn boot(config: Config) -> (Instance, Thread) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let sink = log.clone();
    let config = config.log(move |text| sink.lock().expect("no panic").extend_from_slice(text));
    Instance::in_process(config).unwrap_or_else(|e| {
        panic!("{e}\n{}", String::from_utf8_lossy(&log.lock().expect("no panic")))
    })
}
