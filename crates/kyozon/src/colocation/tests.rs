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
        error(&|machine| machine.files.change(file, |text| text.lines().map(zero).collect()), &[])
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
    assert!(without(IOMEM, "Kernel code").contains("no line \"Kernel code\""));
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
    assert!(load(&mut machine, &options(&tasks)).unwrap_err().to_string().contains("at most 6"));
    assert!(machine.log.is_empty());
}
