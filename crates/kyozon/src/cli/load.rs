//! Options of `kyozon load`.

use super::values::{port, size};
use clap::{Args, ValueEnum};
use kyozon_abi::{device, layer, task};
use std::path::PathBuf;

/// The wall between the cokernel and Linux.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Isolation {
    /// No wall: fastest, and Linux can reach the cokernel's memory
    None,
    /// Nested paging: Linux becomes a guest
    Vmm,
}

/// The timer of the cokernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Tick {
    /// The first timer that works on this machine
    Auto,
    /// HPET timer 2, delivered as MSI
    HpetMsi,
    /// HPET timer 2, delivered through the IO-APIC
    HpetIoapic,
    /// The real-time clock
    Rtc,
}

/// The monitor's task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Watch {
    /// None: the monitor is not loaded.
    Off,
    /// Report findings.
    Report,
    /// Report findings and repair them.
    Repair,
    /// Report findings, and do what the operator's policy says.
    Policy,
}

/// Default memory of a cokernel without the monitor, bytes.
const MEMORY: u64 = 4 << 20;

/// Images, resources and consents of a load.
#[derive(Debug, Args)]
pub struct LoadOptions {
    /// Wall between the cokernel and Linux
    #[arg(long, value_enum, default_value = "none", env = "KYOZON_ISOLATION")]
    pub isolation: Isolation,
    /// Lock the wall with the key in this file, 16 to 4096 random bytes: only unload with the same file opens it
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Ticks per second
    #[arg(long, value_name = "HZ", default_value_t = 100)]
    pub hz: u32,
    /// Longest stop of Linux in microseconds; after that the cokernel is cut off until the next tick
    #[arg(long, value_name = "US", default_value_t = 200)]
    pub budget: u32,
    /// CPU that the cokernel shares with Linux
    #[arg(long, default_value_t = 0)]
    pub cpu: u32,
    /// Timer of the ticks
    #[arg(long, value_enum, default_value = "auto")]
    pub tick: Tick,
    /// Memory of the cokernel in bytes, or with K, M, G [default: the monitor's need; for other cokernels 4M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// I/O port of a serial line that only the cokernel uses, such as 0x2f8; 0 for none
    #[arg(long, value_name = "PORT", default_value = "0", value_parser = port)]
    pub serial: u32,
    /// Number passed to the cokernel in its boot block
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub parameter: u64,
    /// Let the monitor report findings and repair nothing
    #[arg(long, conflicts_with_all = ["cokernel", "task", "data"])]
    pub report_only: bool,
    /// What the monitor does about each class of findings, fixed at the load: see `kyozon policy` [default: repair what
    /// has a repair, report all else, never restart]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cokernel", "task", "data", "report_only"])]
    pub policy: Option<PathBuf>,
    /// The running kernel's image from its package [default: /boot/vmlinuz-RELEASE if it exists]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cokernel", "task", "data"])]
    pub kernel_image: Option<PathBuf>,
    /// Cokernel image, instead of the microkernel with the monitor
    #[arg(long, value_name = "FILE")]
    pub cokernel: Option<PathBuf>,
    /// Image of a user task of the cokernel, instead of the monitor
    #[arg(long, value_name = "FILE")]
    pub task: Vec<PathBuf>,
    /// Data for the first task, unchecked, at most 64M, or a program in typed code, which the microkernel checks and
    /// runs as its last task; the monitor is not loaded then
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Image of the colocation layer
    #[arg(long, value_name = "FILE")]
    pub layer: Option<PathBuf>,
    /// Kernel module, if it is not installed for the running kernel
    #[arg(long, value_name = "FILE")]
    pub module: Option<PathBuf>,
    /// Continue although the running kernel is outside the tested range
    #[arg(long)]
    pub untested_kernel: bool,
    /// Continue although no run on such a machine has been reported
    #[arg(long)]
    pub untested_hardware: bool,
}

impl LoadOptions {
    /// The monitor's task. The monitor is loaded unless the options name another cokernel, task or data.
    pub fn watch(&self) -> Watch {
        if self.cokernel.is_some() || !self.task.is_empty() || self.data.is_some() {
            Watch::Off
        } else if self.parameter() & task::MONITOR_REPORT_ONLY != 0 {
            Watch::Report
        } else if self.policy.is_some() {
            Watch::Policy
        } else {
            Watch::Repair
        }
    }

    fn parameter(&self) -> u64 {
        self.parameter | if self.report_only { task::MONITOR_REPORT_ONLY } else { 0 }
    }

    /// The request to the module, without images and data.
    pub fn request(&self) -> device::Load {
        let mode = match self.isolation {
            Isolation::None => layer::MODE_NONE,
            Isolation::Vmm => layer::MODE_VMM,
        };
        let flag = |on: bool, bit| if on { bit } else { 0 };
        device::Load {
            version: device::DEVICE_VERSION,
            mode,
            tick_hz: self.hz,
            budget_us: self.budget,
            cpu: self.cpu,
            tick_source: self.tick.number(),
            flags: flag(self.untested_kernel, device::LOAD_UNTESTED_KERNEL)
                | flag(self.untested_hardware, device::LOAD_UNTESTED_HARDWARE),
            serial_port: self.serial,
            memory_bytes: self.memory.unwrap_or(MEMORY),
            parameter: self.parameter(),
            image_count: 0,
            images: [device::Image::default(); device::MAX_IMAGES],
            message: [0; device::MESSAGE_BYTES],
            data: device::Image::default(),
            hypervisor: device::Image::default(),
            key: device::Image::default(),
        }
    }
}

impl Tick {
    /// The `TICK_*` constant of `abi::device`.
    pub fn number(self) -> u32 {
        match self {
            Self::Auto => device::TICK_AUTO,
            Self::HpetMsi => device::TICK_HPET_MSI,
            Self::HpetIoapic => device::TICK_HPET_IOAPIC,
            Self::Rtc => device::TICK_RTC,
        }
    }
}

#[cfg(test)]
mod tests;
