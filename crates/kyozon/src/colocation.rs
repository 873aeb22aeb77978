//! What load, unload and status do.

use crate::checks::{self, Check};
use crate::cli::LoadOptions;
use crate::machine::{module_places, Machine};
use anyhow::{bail, ensure, Result};
use kyozon_abi::device::{Image, Status, MAX_IMAGES, STATE_EMPTY};
use std::path::{Path, PathBuf};

/// Where images are installed: beside this program's `bin`, or where `KYOZON_IMAGES` says.
fn image_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("KYOZON_IMAGES") {
        return folder.into();
    }
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.parent()?.join("lib/kyozon")));
    beside.filter(|folder| folder.is_dir()).unwrap_or_else(|| "/usr/lib/kyozon".into())
}

/// Inserts the module if need be, loads layer, cokernel and tasks, and returns what then runs.
///
/// Where the load is refused, a module that was inserted for it is taken out again.
pub fn load(machine: &mut impl Machine, options: &LoadOptions) -> Result<Status> {
    let folder = image_folder();
    let layer = options.layer.clone().unwrap_or_else(|| folder.join("layer.bin"));
    let cokernel = options.cokernel.clone().unwrap_or_else(|| folder.join("cokernel.bin"));
    let paths: Vec<PathBuf> =
        [layer, cokernel].into_iter().chain(options.task.iter().cloned()).collect();
    ensure!(
        paths.len() <= MAX_IMAGES,
        "{} tasks: at most {} fit",
        options.task.len(),
        MAX_IMAGES - 2
    );
    let images = paths.iter().map(|path| machine.read(path)).collect::<Result<Vec<_>>>()?;
    let data: Option<Vec<u8>> =
        options.data.as_deref().map(|path| machine.read(path)).transpose()?;
    let mut request = options.request();
    request.image_count = images.len() as u64;
    for (slot, image) in request.images.iter_mut().zip(&images) {
        *slot = in_memory(image);
    }
    request.data = data.as_deref().map(in_memory).unwrap_or_default();
    let inserted = !machine.has_module()?;
    if inserted {
        let module = find_module(machine, options.module.as_deref())?;
        machine.insert(&module)?;
    }
    let outcome = machine.load(&mut request).and_then(|()| {
        // What cannot be watched is not left running.
        machine.status().inspect_err(|_| drop(machine.unload()))
    });
    if let (Err(error), true) = (&outcome, inserted) {
        machine.remove().map_err(|kept| anyhow::anyhow!("{error:#}; and then: {kept:#}"))?;
    }
    outcome
}

/// Where the kernel finds `bytes`, as long as they live.
fn in_memory(bytes: &[u8]) -> Image {
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
        None => bail!("no kyozon.ko for kernel {release}: build and install it (dkms), or name it with --module"),
    }
}

/// Stops the cokernel, takes the module out, and says what was done.
pub fn unload(machine: &mut impl Machine) -> Result<&'static str> {
    if !machine.has_module()? {
        return Ok("nothing was loaded");
    }
    let loaded = machine.status()?.state != STATE_EMPTY;
    if loaded {
        machine.unload()?;
    }
    machine.remove().map_err(|kept| match loaded {
        true => anyhow::anyhow!("the cokernel is out, but {kept:#}"),
        false => kept,
    })?;
    Ok(if loaded {
        "unloaded: everything is given back"
    } else {
        "nothing was loaded; the module is out"
    })
}

/// What is loaded, and what it does.
#[derive(Debug)]
pub struct Look {
    /// As the module says.
    pub status: Status,
    /// Checks with a name, as the monitor says.
    pub checks: Vec<Check>,
}

/// What is loaded; `None` where nothing is.
pub fn status(machine: &mut impl Machine) -> Result<Option<Look>> {
    let Some(status) = loaded(machine)? else { return Ok(None) };
    let checks = match machine.events(status.events_bytes)? {
        Some(ring) => checks::read(ring, machine.now())?,
        None => return Ok(None),
    };
    Ok(Some(Look { status, checks }))
}

/// What the module says is loaded; `None` where nothing is.
pub fn loaded(machine: &mut impl Machine) -> Result<Option<Status>> {
    if !machine.has_module()? {
        return Ok(None);
    }
    let status = machine.status()?;
    Ok((status.state != STATE_EMPTY).then_some(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::fake::Fake;
    use clap::Parser;

    fn options(words: &[&str]) -> LoadOptions {
        match Cli::parse_from(["kyozon", "load"].iter().chain(words)).command {
            Command::Load(options) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn load_and_unload_are_each_others_inverse() {
        let mut machine = Fake::default();
        assert!(status(&mut machine).unwrap().is_none());
        load(&mut machine, &options(&["--module", "x.ko"])).unwrap();
        assert!(status(&mut machine).unwrap().is_some());
        unload(&mut machine).unwrap();
        assert_eq!(machine.log, ["insert", "load", "unload", "remove"]);
        assert!(!machine.module);
        assert_eq!(unload(&mut machine).unwrap(), "nothing was loaded");
    }

    #[test]
    fn a_refused_load_leaves_the_module_as_it_was() {
        let mut machine = Fake { refuses: true, ..Fake::default() };
        let error = load(&mut machine, &options(&["--module", "x.ko"])).unwrap_err();
        assert!(error.to_string().contains("interrupt remapping"));
        assert_eq!(machine.log, ["insert", "load", "remove"]);
        let mut machine = Fake { refuses: true, module: true, ..Fake::default() };
        assert!(load(&mut machine, &options(&[])).is_err());
        assert_eq!((machine.log.as_slice(), machine.module), (["load"].as_slice(), true));
    }

    #[test]
    fn a_load_that_gives_no_status_is_undone() {
        let mut machine = Fake { blind: true, ..Fake::default() };
        let error = load(&mut machine, &options(&["--module", "x.ko"])).unwrap_err();
        assert!(error.to_string().contains("no status"));
        assert_eq!(machine.log, ["insert", "load", "unload", "remove"]);
    }

    #[test]
    fn data_reaches_the_module() {
        let mut machine = Fake::default();
        load(&mut machine, &options(&["--module", "x.ko", "--data", "profile"])).unwrap();
        assert_eq!(machine.data, [1; 10]);
        let mut machine = Fake::default();
        let error = load(&mut machine, &options(&["--data", "missing"])).unwrap_err();
        assert!(error.to_string().contains("missing: no such file"));
        assert!(machine.log.is_empty());
    }

    #[test]
    fn what_is_missing_is_named_before_anything_is_changed() {
        let mut machine = Fake::default();
        let error = load(&mut machine, &options(&["--layer", "missing"])).unwrap_err();
        assert!(error.to_string().contains("missing"));
        let error = load(&mut machine, &options(&[])).unwrap_err();
        assert!(error.to_string().contains("no kyozon.ko for kernel 6.99-none"));
        let tasks = ["--task", "t"].repeat(MAX_IMAGES - 1);
        assert!(load(&mut machine, &options(&tasks))
            .unwrap_err()
            .to_string()
            .contains("at most 6"));
        assert!(machine.log.is_empty());
    }
}
