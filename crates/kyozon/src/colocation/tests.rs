use super::*;
use crate::cli::{Cli, Command};
use crate::fake::Fake;
use clap::Parser;
use kyozon_abi::task::{MONITOR_EXPECTED, MONITOR_REPORT_ONLY};
use kyozon_monitor::class::Class;
use kyozon_monitor::policy::{Action, Policy};
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
    unload(&mut machine, None).unwrap();
    assert_eq!(machine.log, ["insert", "load", "unload", "remove"]);
    assert!(!machine.module);
    assert_eq!(unload(&mut machine, None).unwrap(), "nothing was loaded");
}

#[test]
fn a_locked_wall_opens_with_its_key_only() {
    let locked = ["--module", "x.ko", "--isolation", "vmm", "--key-file", "key"];
    let mut machine = Fake::default();
    let key: Vec<u8> = (0..16).collect();
    machine.files.put("key", key.clone());
    machine.files.put("other", vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    load(&mut machine, &options(&locked)).unwrap();
    assert_eq!(machine.key, key);
    for wrong in [None, Some(Path::new("other"))] {
        assert!(unload(&mut machine, wrong).unwrap_err().to_string().contains("locked"));
        assert!(machine.loaded && machine.module);
    }
    unload(&mut machine, Some(Path::new("key"))).unwrap();
    assert!(!machine.loaded && !machine.module);
}

#[test]
fn what_is_no_key_is_refused_before_the_load() {
    let refused = |bytes: Vec<u8>, isolation: &str| {
        let mut machine = Fake::default();
        machine.files.put("key", bytes);
        let words = ["--module", "x.ko", "--isolation", isolation, "--key-file", "key"];
        let error = load(&mut machine, &options(&words)).unwrap_err();
        assert!(machine.log.is_empty());
        error.to_string()
    };
    assert!(refused((0..15).collect(), "vmm").contains("key has 15 bytes, a key has 16 to 4096"));
    assert!(refused(vec![1; 4097], "vmm").contains("key has 4097 bytes"));
    assert!(refused(vec![7; 32], "vmm").contains("the same byte everywhere"));
    assert!(refused((0..16).collect(), "none").contains("nothing to lock"));
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
    let (policy, profile) = Policy::decode(&machine.data).unwrap();
    assert_eq!(policy, Policy::default());
    let profile = Profile::decode(profile).unwrap();
    assert_eq!((profile.release(), machine.images), ("6.99-none", 3));
    assert_eq!(
        (machine.parameter, machine.memory),
        (MONITOR_REPORT_ONLY | MONITOR_EXPECTED, 58 << 20)
    );
    let mut machine = Fake::default();
    load(&mut machine, &options(&["--module", "x.ko", "--memory", "1G"])).unwrap();
    assert_eq!((machine.parameter, machine.memory), (MONITOR_EXPECTED, 1 << 30));
    let mut machine = Fake::default();
    load(&mut machine, &options(&["--module", "x.ko", "--cokernel", "x"])).unwrap();
    assert_eq!((machine.images, machine.memory, machine.data.len()), (2, 4 << 20, 0));
}

#[test]
fn a_policy_is_read_before_anything_is_done() {
    let load_with = |text: &str| {
        let mut machine = Fake::default();
        machine.files.add("p.toml", text);
        let words = options(&["--module", "x.ko", "--policy", "p.toml"]);
        load(&mut machine, &words).map(|_| machine.data).map_err(|error| (error, machine.log))
    };
    let data = load_with("'hook.hidden' = 'restart'").unwrap();
    let (policy, _) = Policy::decode(&data).unwrap();
    assert_eq!(policy.of(Class::HookHidden), Action::Restart);
    let (error, log) = load_with("'hook.hidden' = 'repair'").unwrap_err();
    assert!(format!("{error:#}").contains("the monitor has no repair") && log.is_empty());
}

#[test]
fn without_a_kernel_image_code_is_trusted_as_found() {
    let code = |change: &dyn Fn(&mut Fake), words: &[&str]| {
        let mut machine = Fake::default();
        change(&mut machine);
        load(&mut machine, &options(&[&["--module", "x.ko"], words].concat())).unwrap().code
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
    // Root sees addresses, unless something filters them.
    let filtered = |lines: &dyn Fn(String) -> String| {
        let text = error(
            &|machine| {
                machine.files.add("kptr_restrict", "0\n");
                machine.files.add("self/status", "Name:\tx\nCapEff:\t0000000400000000\n");
                machine.files.change(KALLSYMS, lines);
            },
            &[],
        );
        assert!(text.contains("something filters /proc/kallsyms"), "{text}");
    };
    let zero = |line: &str| format!("{:016} {}\n", 0, line.split_once(' ').unwrap().1);
    filtered(&|text| text.lines().map(zero).collect());
    filtered(&|text| text.replace("init_task", "other"));
    filtered(&|text| text.replace("_stext", "other"));
    for name in ["init_pid_ns", "modules"] {
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
        "the monitor needs 58M of memory for this kernel: use --memory 58M or more, or leave --memory out"
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
