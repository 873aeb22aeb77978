//! What load takes.

use super::values::{port, size};
use clap::{Args, ValueEnum};
use kyozon_abi::{device, layer, task};
use std::path::PathBuf;

/// What stands between the cokernel and Linux.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Isolation {
    /// Nothing: fastest, and Linux can reach the cokernel's memory
    None,
    /// Nested paging: Linux becomes a guest
    Vmm,
}

/// Where the cokernel's ticks come from.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Tick {
    /// The first that this machine has
    Auto,
    /// HPET timer 2, delivered by message
    HpetMsi,
    /// HPET timer 2, delivered through the IO-APIC
    HpetIoapic,
    /// The real-time clock
    Rtc,
}

/// What the monitor does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Watch {
    /// It is not loaded.
    No,
    /// It tells what it finds.
    Report,
    /// It tells what it finds, and undoes it.
    Repair,
}

/// Memory for a cokernel without the monitor, bytes.
const MEMORY: u64 = 4 << 20;

/// What to load, and how.
#[derive(Debug, Args)]
pub struct LoadOptions {
    /// What stands between the cokernel and Linux
    #[arg(long, value_enum, default_value = "none", env = "KYOZON_ISOLATION")]
    pub isolation: Isolation,
    /// Ticks a second
    #[arg(long, value_name = "HZ", default_value_t = 100)]
    pub hz: u32,
    /// Microseconds that one stop of Linux may last before the cokernel is cut off
    #[arg(long, value_name = "US", default_value_t = 200)]
    pub budget: u32,
    /// CPU that the cokernel shares with Linux
    #[arg(long, default_value_t = 0)]
    pub cpu: u32,
    /// Where ticks come from
    #[arg(long, value_enum, default_value = "auto")]
    pub tick: Tick,
    /// Memory for the cokernel: bytes, or with K, M, G [default: what the monitor needs; for others 4M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// I/O port of a serial line for the cokernel alone, such as 0x2f8
    #[arg(long, value_name = "PORT", default_value = "0", value_parser = port)]
    pub serial: u32,
    /// Number that the cokernel finds in its boot block
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub parameter: u64,
    /// Let the monitor tell what it finds, and repair nothing
    #[arg(long, conflicts_with_all = ["cokernel", "task", "data"])]
    pub report_only: bool,
    /// Image of the running kernel, as its package brought it [default: /boot/vmlinuz-RELEASE, where it is there]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cokernel", "task", "data"])]
    pub kernel_image: Option<PathBuf>,
    /// Cokernel image, instead of the microkernel with the monitor
    #[arg(long, value_name = "FILE")]
    pub cokernel: Option<PathBuf>,
    /// Image of a user task of the cokernel, instead of the monitor
    #[arg(long, value_name = "FILE")]
    pub task: Vec<PathBuf>,
    /// Data for the cokernel, as it stands: at most 64M. The monitor is not loaded then
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Colocation layer's image
    #[arg(long, value_name = "FILE")]
    pub layer: Option<PathBuf>,
    /// Kernel module, where it is not installed for the running kernel
    #[arg(long, value_name = "FILE")]
    pub module: Option<PathBuf>,
    /// Go on although the running kernel is outside the tested range
    #[arg(long)]
    pub untested_kernel: bool,
    /// Go on although nobody has reported a run on such a machine
    #[arg(long)]
    pub untested_hardware: bool,
}

impl LoadOptions {
    /// What the monitor is to do: it is loaded where nothing else was named.
    pub fn watch(&self) -> Watch {
        if self.cokernel.is_some() || !self.task.is_empty() || self.data.is_some() {
            Watch::No
        } else if self.parameter() & task::MONITOR_REPORT_ONLY != 0 {
            Watch::Report
        } else {
            Watch::Repair
        }
    }

    fn parameter(&self) -> u64 {
        self.parameter | if self.report_only { task::MONITOR_REPORT_ONLY } else { 0 }
    }

    /// The request, its images still to come.
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
        }
    }
}

impl Tick {
    /// `TICK_*` of the interface.
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
