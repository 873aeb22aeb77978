//! The operations of files of devices: terminals, consoles, and the many that share a major number
//! (`drivers/char/misc.c` of Linux); and those of the terminals' drivers.

use super::source::{named, offset, visit_list, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{entries, List};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The image's own devices of terminals and consoles.
const DEVICES: [&str; 3] = ["console_cdev", "tty_cdev", "vc0_cdev"];
/// Bytes of the longest name that is shown; drivers of which one is looked for by its name.
const NAME_BYTES: usize = 32;
const MAX_DRIVERS: usize = 256;

/// A list of objects, each with a pointer to its operations, a pointer to its name, and a number.
#[derive(Debug)]
struct Kind {
    list: List,
    operations: u64,
    name: u64,
    number: u64,
}

impl Kind {
    fn new(profile: &Profile<'_>, head: &str, structure: &str, members: [&str; 4]) -> Option<Self> {
        let [link, operations, name, number] =
            members.map(|member| offset(profile, structure, member));
        let list = List { head: profile.symbol(head)?, link: link? };
        Some(Self { list, operations: operations?, name: name?, number: number? })
    }

    fn name<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let name = kernel.u64(object.wrapping_add(self.name));
        name.and_then(|name| kernel.c_string(name, NAME_BYTES)).unwrap_or_default()
    }
}

#[derive(Debug)]
pub(super) struct Files {
    /// Addresses of the image's own devices' pointers.
    devices: Vec<u64>,
    /// The drivers of terminals, and the devices that share a number.
    drivers: Option<Kind>,
    shared: Option<Kind>,
}

impl Source for Files {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("cdev", "ops", Optional),
            ("miscdevice", "fops", Optional),
            ("miscdevice", "list", Optional),
            ("miscdevice", "minor", Optional),
            ("miscdevice", "name", Optional),
            ("tty_driver", "major", Optional),
            ("tty_driver", "name", Optional),
            ("tty_driver", "ops", Optional),
            ("tty_driver", "tty_drivers", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden operations";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let operations = offset(profile, "cdev", "ops")?;
        let devices = DEVICES.into_iter().filter_map(|name| profile.symbol(name));
        let drivers = ["tty_drivers", "ops", "name", "major"];
        Some(Self {
            devices: devices.map(|device| device + operations).collect(),
            drivers: Kind::new(profile, "tty_drivers", "tty_driver", drivers),
            shared: Kind::new(
                profile,
                "misc_list",
                "miscdevice",
                ["list", "fops", "name", "minor"],
            ),
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let kind = match at.list {
            0 => {
                for &slot in &self.devices {
                    Hook::data(kernel, slot, 0).into_iter().for_each(|hook| see(hook.fixed(0)));
                }
                return Some(at.next_list());
            }
            1 => &self.drivers,
            2 => &self.shared,
            _ => return None,
        };
        let Some(kind) = kind else { return Some(at.next_list()) };
        Some(visit_list(kernel, kind.list.head, at, |link| {
            let object = link.wrapping_sub(kind.list.link);
            let number = kernel.u32(object.wrapping_add(kind.number)).map_or(0, u64::from);
            let name = kernel.u64(object.wrapping_add(kind.name)).unwrap_or(0);
            let hook = Hook::data(kernel, object, kind.operations);
            let stamp = named(kernel, name, number);
            hook.into_iter().for_each(|hook| see(hook.fixed(stamp)));
        }))
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        if kernel.in_image(object) {
            return owner::symbol(kernel, object);
        }
        let is_drivers = |kind: &&Kind| {
            entries(kernel, kind.list).take(MAX_DRIVERS).any(|driver| driver == object)
        };
        match (self.drivers.as_ref().filter(is_drivers), &self.shared) {
            (Some(kind), _) => format!("terminals of {}", kind.name(kernel, object)),
            (_, Some(kind)) => format!("device {}", kind.name(kernel, object)),
            _ => owner::symbol(kernel, object),
        }
    }
}
