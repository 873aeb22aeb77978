//! What load, unload and status do.

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
    let mut request = options.request();
    request.image_count = images.len() as u64;
    for (slot, image) in request.images.iter_mut().zip(&images) {
        *slot = Image { address: image.as_ptr() as u64, bytes: image.len() as u64 };
    }
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
    machine.remove()?;
    Ok(if loaded {
        "unloaded: everything is given back"
    } else {
        "nothing was loaded; the module is out"
    })
}

/// What is loaded; `None` where nothing is.
pub fn status(machine: &mut impl Machine) -> Result<Option<Status>> {
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
    use clap::Parser;
    use kyozon_abi::device::{Load, DEVICE_VERSION, STATE_RUNNING};

    /// A machine that notes what was asked of it.
    #[derive(Default)]
    struct Fake {
        module: bool,
        loaded: bool,
        refuses: bool,
        blind: bool,
        log: Vec<&'static str>,
    }

    impl Machine for Fake {
        fn release(&self) -> String {
            "6.99-none".into()
        }
        fn has_module(&self) -> Result<bool> {
            Ok(self.module)
        }
        fn insert(&mut self, _: &Path) -> Result<()> {
            self.log.push("insert");
            self.module = true;
            Ok(())
        }
        fn remove(&mut self) -> Result<()> {
            assert!(!self.loaded, "the module is in use");
            self.log.push("remove");
            self.module = false;
            Ok(())
        }
        fn read(&self, path: &Path) -> Result<Vec<u8>> {
            if path.ends_with("missing") {
                bail!("{}: no such file", path.display());
            }
            Ok(vec![1; 10])
        }
        fn load(&mut self, request: &mut Load) -> Result<()> {
            self.log.push("load");
            assert_eq!(
                (request.image_count, request.images[1].bytes, request.images[2].bytes),
                (2, 10, 0)
            );
            if self.refuses {
                bail!("interrupt remapping is active");
            }
            self.loaded = true;
            Ok(())
        }
        fn unload(&mut self) -> Result<()> {
            self.log.push("unload");
            self.loaded = false;
            Ok(())
        }
        fn status(&mut self) -> Result<Status> {
            if self.blind {
                bail!("no status");
            }
            let state = if self.loaded { STATE_RUNNING } else { STATE_EMPTY };
            Ok(Status { version: DEVICE_VERSION, state, ..crate::report::tests::status() })
        }
    }

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
