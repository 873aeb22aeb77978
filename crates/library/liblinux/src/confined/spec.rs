//! What a child is to run, as the words of its command line.

use kyozon_devices::disk::Limits;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::str::FromStr;

/// A disk: an inherited descriptor and what the parent knows of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// The file.
    pub fd: RawFd,
    /// The kernel may write to it.
    pub write: bool,
    /// Its properties.
    pub limits: Limits,
    /// The file is a qcow2 image.
    pub qcow2: bool,
}

/// A child's task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The process that started it.
    pub parent: u32,
    /// The shared memory.
    pub area: RawFd,
    /// Number of slots.
    pub slots: usize,
    /// The kernel's image.
    pub image: RawFd,
    /// Its path, for messages.
    pub path: PathBuf,
    /// Bytes of the kernel's memory.
    pub memory_bytes: usize,
    /// Options for the kernel's command line.
    pub options: String,
    /// In the kernel's order.
    pub disks: Vec<Disk>,
    /// Number and arguments of a system call that the child makes when it is confined. For tests of the confinement.
    pub probe: Option<[u64; 7]>,
}

/// Words before those of the disks.
const FIXED: usize = 8;

impl Spec {
    /// The command line.
    pub fn words(&self) -> Vec<String> {
        let probe = self.probe.iter().flatten().map(u64::to_string).collect::<Vec<_>>().join(",");
        let mut words = vec![
            self.parent.to_string(),
            self.area.to_string(),
            self.slots.to_string(),
            self.image.to_string(),
            self.path.to_string_lossy().into_owned(),
            self.memory_bytes.to_string(),
            format!("options={}", self.options),
            format!("probe={probe}"),
        ];
        words.extend(self.disks.iter().map(|disk| {
            let Limits { block, physical, holes } = disk.limits;
            format!("{},{},{block},{physical},{holes},{}", disk.fd, disk.write, disk.qcow2)
        }));
        words
    }

    /// Reads a command line.
    pub fn parse(words: &[String]) -> Option<Self> {
        let [parent, area, slots, image, path, memory, options, probe] = words.get(..FIXED)? else {
            return None;
        };
        let probe = match probe.strip_prefix("probe=")? {
            "" => None,
            numbers => Some(list(numbers)?.try_into().ok()?),
        };
        let disk = |word: &String| {
            let [fd, write, block, physical, holes, qcow2] =
                word.split(',').collect::<Vec<_>>().try_into().ok()?;
            let limits = Limits {
                block: block.parse().ok()?,
                physical: physical.parse().ok()?,
                holes: holes.parse().ok()?,
            };
            let (fd, write) = (fd.parse().ok()?, write.parse().ok()?);
            Some(Disk { fd, write, limits, qcow2: qcow2.parse().ok()? })
        };
        Some(Self {
            parent: parent.parse().ok()?,
            area: area.parse().ok()?,
            slots: slots.parse().ok()?,
            image: image.parse().ok()?,
            path: path.into(),
            memory_bytes: memory.parse().ok()?,
            options: options.strip_prefix("options=")?.to_owned(),
            disks: words[FIXED..].iter().map(disk).collect::<Option<_>>()?,
            probe,
        })
    }
}

fn list<T: FromStr>(numbers: &str) -> Option<Vec<T>> {
    numbers.split(',').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
