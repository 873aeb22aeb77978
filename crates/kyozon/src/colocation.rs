//! `kyozon load`, `unload` and `status`.

use crate::checks::{self, Check};
use crate::cli::{Isolation, LoadOptions, Watch};
use crate::key::Key;
use crate::machine::{module_places, Machine};
use crate::monitor::{self, Code};
use crate::policy;
use crate::watch::{self, Monitor};
use anyhow::{anyhow, bail, ensure, Context, Result};
use kyozon_abi::device::{Image, Status, LOAD_OUTLIVES_PANIC, MAX_IMAGES, STATE_EMPTY};
use kyozon_abi::task::MONITOR_EXPECTED;
use kyozon_monitor::class::Class;
use kyozon_monitor::policy::Action;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of installed images: `KYOZON_IMAGES` if set, otherwise `lib/kyozon` beside this program's `bin`.
pub fn image_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("KYOZON_IMAGES") {
        return folder.into();
    }
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.parent()?.join("lib/kyozon")));
    beside.filter(|folder| folder.is_dir()).unwrap_or_else(|| "/usr/lib/kyozon".into())
}

/// A successful load.
#[derive(Debug)]
pub struct Loaded {
    /// The status of the running cokernel.
    pub status: Status,
    /// The origin of the code that the monitor trusts; `None` for another cokernel.
    pub code: Option<Code>,
    /// What something hides from the monitor's profile, in one line.
    pub warning: Option<String>,
}

/// Inserts the module if necessary and loads layer, cokernel and tasks.
///
/// Unless the options name something else, the task is the monitor and its data a profile of the running kernel.
///
/// # Errors
///
/// A file that cannot be read, a kernel that the monitor cannot watch, or a refusal by the module. If the load is
/// refused, a module that was inserted for it is removed again.
pub fn load(machine: &mut impl Machine, options: &LoadOptions) -> Result<Loaded> {
    let folder = image_folder();
    let named_or_installed = |named: &Option<PathBuf>, name: &str| match named {
        Some(path) => machine.read(path),
        None => read_installed(machine, &folder, name),
    };
    ensure!(
        options.key_file.is_none() || options.isolation == Isolation::Vmm,
        "without a wall there is nothing to lock: use --key-file with --isolation vmm"
    );
    let key = Key::of(machine, options.key_file.as_deref())?;
    let (max, tasks) = (MAX_IMAGES - 2, options.task.len());
    ensure!(tasks <= max, "too many tasks: {tasks} are given with --task, at most {max} fit");
    let mut images = vec![
        named_or_installed(&options.layer, "layer.bin")?,
        named_or_installed(&options.cokernel, "cokernel.bin")?,
    ];
    for path in &options.task {
        images.push(machine.read(path)?);
    }
    let hypervisor = match options.isolation {
        Isolation::None => None,
        Isolation::Vmm => Some(read_installed(machine, &folder, "svm.bin")?),
    };
    let mut data: Option<Vec<u8>> =
        options.data.as_deref().map(|path| machine.read(path)).transpose()?;
    let mut request = options.request();
    let (mut code, mut warning) = (None, None);
    if options.watch() != Watch::Off {
        let image = machine.read(&folder.join("monitor.bin"));
        images.push(
            image.context(
                "the monitor is not installed: run make install, or load with --cokernel",
            )?,
        );
        let policy = options.policy.as_deref();
        let policy = policy.map(|path| policy::parse(path, &machine.read(path)?)).transpose()?;
        let policy = policy.unwrap_or_default();
        if policy.of(Class::LinuxPanicked) == Action::Restart {
            request.flags |= LOAD_OUTLIVES_PANIC;
        }
        let needs = monitor::requirements(machine, options.kernel_image.as_deref())?;
        request.memory_bytes = needs.memory(options.memory)?;
        request.parameter |= MONITOR_EXPECTED;
        data = Some([&policy.encode()[..], &needs.profile].concat());
        (code, warning) = (Some(needs.code), needs.warning);
    }
    request.image_count = images.len() as u64;
    for (slot, image) in request.images.iter_mut().zip(&images) {
        *slot = image_of(image);
    }
    request.hypervisor = hypervisor.as_deref().map(image_of).unwrap_or_default();
    request.data = data.as_deref().map(image_of).unwrap_or_default();
    if options.key_file.is_some() {
        request.key = image_of(key.bytes());
    }
    let inserted = !machine.has_module()?;
    if inserted {
        let module = find_module(machine, options.module.as_deref())?;
        machine.insert(&module)?;
    }
    let outcome = machine.load(&mut request).and_then(|()| {
        // A cokernel without a readable status is not left running.
        machine.status().inspect_err(|_| drop(machine.unload(key.bytes())))
    });
    if let (Err(error), true) = (&outcome, inserted) {
        machine
            .remove()
            .map_err(|kept| anyhow!("{error:#}; then removing the module failed: {kept:#}"))?;
    }
    Ok(Loaded { status: outcome?, code, warning })
}

/// Reads the installed image `name`.
fn read_installed(machine: &impl Machine, folder: &Path, name: &str) -> Result<Vec<u8>> {
    machine.read(&folder.join(name)).map_err(|error| match error.downcast_ref::<io::Error>() {
        Some(cause) if cause.kind() == io::ErrorKind::NotFound => {
            let folder = folder.display();
            anyhow!("{name} not found in {folder}: run make install, or set KYOZON_IMAGES")
        }
        _ => error,
    })
}

/// Address and length of `bytes` for the module. Valid as long as `bytes` live.
fn image_of(bytes: &[u8]) -> Image {
    Image { address: bytes.as_ptr() as u64, bytes: bytes.len() as u64 }
}

fn find_module(machine: &impl Machine, named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let release = machine.release();
    let places = module_places(&release);
    match places.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.clone()),
        None => bail!("kyozon.ko not found for kernel {release}: install it with dkms, or name it with --module"),
    }
}

/// Stops the cokernel and removes the module. Returns the line to print. `key_file` has the key of the load.
pub fn unload(machine: &mut impl Machine, key_file: Option<&Path>) -> Result<&'static str> {
    let key = Key::of(machine, key_file)?;
    if !machine.has_module()? {
        return Ok("nothing was loaded");
    }
    let loaded = machine.status()?.state != STATE_EMPTY;
    if loaded {
        machine.unload(key.bytes())?;
    }
    machine.remove().map_err(|kept| match loaded {
        true => anyhow!("the cokernel was unloaded, but {kept:#}"),
        false => kept,
    })?;
    Ok(if loaded {
        "unloaded: all resources were returned to Linux"
    } else {
        "nothing was loaded; the module was removed"
    })
}

/// The status of a loaded cokernel.
#[derive(Debug)]
pub struct Snapshot {
    /// The module's part.
    pub status: Status,
    /// The monitor's part: its checks.
    pub checks: Vec<Check>,
    /// The monitor itself; `None` if the cokernel is another one.
    pub monitor: Option<Monitor>,
}

/// The status of the cokernel; `None` if nothing is loaded.
pub fn status(machine: &mut impl Machine) -> Result<Option<Snapshot>> {
    let Some(status) = loaded(machine)? else { return Ok(None) };
    let Some(ring) = machine.events(status.events_bytes)? else { return Ok(None) };
    let now = machine.now();
    let checks = checks::read(&ring, now)?;
    let monitor = watch::read(&ring, now, &status, &checks);
    Ok(Some(Snapshot { status, checks, monitor }))
}

/// The module's status; `None` if nothing is loaded.
pub fn loaded(machine: &mut impl Machine) -> Result<Option<Status>> {
    if !machine.has_module()? {
        return Ok(None);
    }
    let status = machine.status()?;
    Ok((status.state != STATE_EMPTY).then_some(status))
}

#[cfg(test)]
mod tests;
