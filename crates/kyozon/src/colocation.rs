//! `kyozon load`, `unload` and `status`.

use crate::checks::{self, Check};
use crate::cli::{Isolation, LoadOptions, Watch};
use crate::machine::{module_places, Machine};
use crate::monitor::{self, Code};
use anyhow::{bail, ensure, Context, Result};
use kyozon_abi::device::{Image, Status, MAX_IMAGES, STATE_EMPTY};
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

/// Inserts the module if necessary and loads layer, cokernel and tasks. Returns the status of the running cokernel and,
/// for the monitor, the origin of the code that it trusts.
///
/// Unless the options name something else, the task is the monitor and its data a profile of the running kernel.
///
/// # Errors
///
/// A file that cannot be read, a kernel that the monitor cannot watch, or a refusal by the module. If the load is
/// refused, a module that was inserted for it is removed again.
pub fn load(machine: &mut impl Machine, options: &LoadOptions) -> Result<(Status, Option<Code>)> {
    let folder = image_folder();
    let layer = options.layer.clone().unwrap_or_else(|| folder.join("layer.bin"));
    let cokernel = options.cokernel.clone().unwrap_or_else(|| folder.join("cokernel.bin"));
    let paths: Vec<PathBuf> =
        [layer, cokernel].into_iter().chain(options.task.iter().cloned()).collect();
    ensure!(
        paths.len() <= MAX_IMAGES,
        "too many tasks: {} are given with --task, at most {} fit",
        options.task.len(),
        MAX_IMAGES - 2
    );
    let mut images = paths.iter().map(|path| machine.read(path)).collect::<Result<Vec<_>>>()?;
    let hypervisor = match options.isolation {
        Isolation::None => None,
        Isolation::Vmm => Some(machine.read(&folder.join("svm.bin"))?),
    };
    let mut data: Option<Vec<u8>> =
        options.data.as_deref().map(|path| machine.read(path)).transpose()?;
    let mut request = options.request();
    let mut code = None;
    if options.watch() != Watch::Off {
        let image = machine.read(&folder.join("monitor.bin"));
        images.push(
            image.context(
                "the monitor is not installed: run make install, or load with --cokernel",
            )?,
        );
        let needs = monitor::requirements(machine, options.kernel_image.as_deref())?;
        request.memory_bytes = needs.memory(options.memory)?;
        data = Some(needs.profile);
        code = Some(needs.code);
    }
    request.image_count = images.len() as u64;
    for (slot, image) in request.images.iter_mut().zip(&images) {
        *slot = image_of(image);
    }
    request.hypervisor = hypervisor.as_deref().map(image_of).unwrap_or_default();
    request.data = data.as_deref().map(image_of).unwrap_or_default();
    let inserted = !machine.has_module()?;
    if inserted {
        let module = find_module(machine, options.module.as_deref())?;
        machine.insert(&module)?;
    }
    let outcome = machine.load(&mut request).and_then(|()| {
        // A cokernel without a readable status is not left running.
        machine.status().inspect_err(|_| drop(machine.unload()))
    });
    if let (Err(error), true) = (&outcome, inserted) {
        machine.remove().map_err(|kept| {
            anyhow::anyhow!("{error:#}; then removing the module failed: {kept:#}")
        })?;
    }
    Ok((outcome?, code))
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

/// Stops the cokernel and removes the module. Returns the line to print.
pub fn unload(machine: &mut impl Machine) -> Result<&'static str> {
    if !machine.has_module()? {
        return Ok("nothing was loaded");
    }
    let loaded = machine.status()?.state != STATE_EMPTY;
    if loaded {
        machine.unload()?;
    }
    machine.remove().map_err(|kept| match loaded {
        true => anyhow::anyhow!("the cokernel was unloaded, but {kept:#}"),
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
}

/// The status of the cokernel; `None` if nothing is loaded.
pub fn status(machine: &mut impl Machine) -> Result<Option<Snapshot>> {
    let Some(status) = loaded(machine)? else { return Ok(None) };
    let checks = match machine.events(status.events_bytes)? {
        Some(ring) => checks::read(ring, machine.now())?,
        None => return Ok(None),
    };
    Ok(Some(Snapshot { status, checks }))
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
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use crate::fake::Fake;
    use clap::Parser;
    use kyozon_abi::task::MONITOR_REPORT_ONLY;
    use kyozon_monitor::profile::build::{BTF, IOMEM, KALLSYMS};
    use kyozon_monitor::profile::Profile;

    fn options(words: &[&str]) -> LoadOptions {
        match Cli::parse_from(["kyozon", "load"].iter().chain(words)).command {
            Command::Load(options) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn unload_undoes_load() {
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
    fn load_without_status_is_undone() {
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
    fn monitor_gets_profile_and_memory() {
        let mut machine = Fake::default();
        load(&mut machine, &options(&["--module", "x.ko", "--report-only"])).unwrap();
        let profile = Profile::decode(&machine.data).unwrap();
        assert_eq!((profile.release(), machine.images), ("6.99-none", 3));
        assert_eq!((machine.parameter, machine.memory), (MONITOR_REPORT_ONLY, 46 << 20));
        let mut machine = Fake::default();
        load(&mut machine, &options(&["--module", "x.ko", "--memory", "1G"])).unwrap();
        assert_eq!((machine.parameter, machine.memory), (0, 1 << 30));
        let mut machine = Fake::default();
        load(&mut machine, &options(&["--module", "x.ko", "--cokernel", "x"])).unwrap();
        assert_eq!((machine.images, machine.memory, machine.data.len()), (2, 4 << 20, 0));
    }

    #[test]
    fn without_a_kernel_image_code_is_trusted_as_found() {
        let code = |change: &dyn Fn(&mut Fake), words: &[&str]| {
            let mut machine = Fake::default();
            change(&mut machine);
            load(&mut machine, &options(&[&["--module", "x.ko"], words].concat())).unwrap().1
        };
        let found = |why: &str| Some(Code::AsFound(why.into()));
        assert_eq!(code(&|_| (), &[]), found("/boot/vmlinuz-6.99-none: not a bzImage"));
        let gone = code(&|machine| machine.files.remove("vmlinuz-6.99-none"), &[]);
        assert_eq!(gone, found("/boot/vmlinuz-6.99-none: no such file"));
        assert_eq!(code(&|_| (), &["--cokernel", "x"]), None);
        for (file, why) in [("x", "x: not a bzImage"), ("missing", "missing: no such file")] {
            let mut machine = Fake::default();
            let error = load(&mut machine, &options(&["--kernel-image", file])).unwrap_err();
            assert_eq!(format!("{error:#}"), why);
            assert!(machine.log.is_empty());
        }
    }

    #[test]
    fn unsuitable_kernels_are_refused_before_any_change() {
        let error = |change: &dyn Fn(&mut Fake), words: &[&str]| {
            let mut machine = Fake::default();
            change(&mut machine);
            let error = load(&mut machine, &options(&[&["--module", "x.ko"], words].concat()));
            assert!(machine.log.is_empty());
            format!("{:#}", error.unwrap_err())
        };
        let without = |file: &'static str, line: &'static str| {
            error(&|machine| machine.files.change(file, |text| text.replace(line, "")), &[])
        };
        let zeros = |file: &'static str| {
            let zero = |line: &str| {
                let (address, rest) = line.trim_start().split_once(' ').unwrap();
                address.replace(|c: char| c.is_ascii_hexdigit(), "0") + " " + rest + "\n"
            };
            error(
                &|machine| machine.files.change(file, |text| text.lines().map(zero).collect()),
                &[],
            )
        };
        assert_eq!(
            error(&|machine| machine.files.remove(BTF), &[]),
            "the monitor needs a kernel that describes its types (CONFIG_DEBUG_INFO_BTF): \
             /sys/kernel/btf/vmlinux: no such file"
        );
        assert_eq!(
            zeros(KALLSYMS),
            "the monitor cannot watch this kernel: /proc/kallsyms hides addresses: \
             run as root, with kernel.kptr_restrict below 2"
        );
        assert_eq!(
            zeros(IOMEM),
            "the monitor cannot watch this kernel: /proc/iomem hides addresses: load with CAP_SYS_ADMIN"
        );
        for name in ["init_pid_ns", "modules", "_stext"] {
            let text = error(
                &|machine| machine.files.change(KALLSYMS, |text| text.replace(name, "other")),
                &[],
            );
            let wanted = "the monitor cannot watch this kernel: the kernel has no ";
            assert!(text.starts_with(wanted) && text.ends_with(name), "{text}");
        }
        assert!(without(IOMEM, "Kernel code").contains("no Kernel code"));
        let text = error(&|machine| machine.files.hide(BTF, "sum_exec_runtime"), &[]);
        assert!(text.ends_with("has no member task_struct.se.sum_exec_runtime"), "{text}");
        let text = error(&|machine| machine.files.remove("monitor.bin"), &[]);
        assert!(text.starts_with("the monitor is not installed"), "{text}");
        assert!(text.ends_with("monitor.bin: no such file"), "{text}");
        assert_eq!(
            error(&|_| (), &["--memory", "45M"]),
            "the monitor needs 46M of memory for this kernel: use --memory 46M or more, or leave --memory out"
        );
    }

    #[test]
    fn missing_files_are_named_before_any_change() {
        let mut machine = Fake::default();
        let error = load(&mut machine, &options(&["--layer", "missing"])).unwrap_err();
        assert!(error.to_string().contains("missing"));
        let error = load(&mut machine, &options(&[])).unwrap_err();
        assert!(error.to_string().contains("kyozon.ko not found for kernel 6.99-none"));
        let tasks = ["--task", "t"].repeat(MAX_IMAGES - 1);
        assert!(load(&mut machine, &options(&tasks))
            .unwrap_err()
            .to_string()
            .contains("at most 6"));
        assert!(machine.log.is_empty());
    }
}
