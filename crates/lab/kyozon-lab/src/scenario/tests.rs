use super::*;

fn host_case(toml: &str) -> (tempfile::TempDir, Vec<Case>) {
    let tests = tempfile::tempdir().unwrap();
    fs::create_dir_all(tests.path().join("group/one")).unwrap();
    fs::write(tests.path().join("group/one/test.toml"), toml).unwrap();
    let cases = cases(tests.path()).unwrap();
    (tests, cases)
}

fn outcome(toml: &str) -> String {
    let (_tests, cases) = host_case(toml);
    match cases[0].run(false, None) {
        Ok(ending) => format!("{ending:?}"),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn each_variant_of_a_folder_is_a_case() {
    let (_tests, cases) = host_case(
        "about = 'x'\n[guest]\nsmp = [1, 2]\n[[step]]\nrun = 'true'\n[[host]]\nrun = 'true'\n",
    );
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let nightly = cases.iter().filter(|case| case.is_nightly_only()).map(|case| &case.name);
    assert_eq!(nightly.collect::<Vec<_>>(), ["group/one [6.12, 2 CPUs]", "group/one [6.1, 1 CPU]"]);
    let want = [
        "group/one [6.12, 1 CPU]",
        "group/one [6.12, 2 CPUs]",
        "group/one [6.1, 1 CPU]",
        "group/one [6.1, 2 CPUs]",
        "group/one",
    ];
    assert_eq!(names, want);
}

#[test]
fn a_case_takes_one_cpu_unless_it_measures_time() {
    let both =
        "[guest]\nkernels = ['6.1']\nsmp = [2]\n[[step]]\nrun = 'true'\n[[host]]\nrun = 'true'\n";
    let of = |head: &str| {
        let (_tests, cases) = host_case(&format!("about = 'x'\n{head}\n{both}"));
        cases.iter().map(|case| (case.cpus(), case.seconds())).collect::<Vec<_>>()
    };
    assert_eq!(of(""), [(1, 20), (1, 20)]);
    assert_eq!(of("timing = true\nseconds = 90"), [(usize::MAX, 90), (usize::MAX, 90)]);
}

#[test]
fn each_property_is_in_the_daily_run() {
    let daily = |keys: &str| {
        let (_tests, cases) = host_case(&format!(
            "about = 'x'\n[guest]\nkyozon = true\n{keys}\n[[step]]\nrun = 'true'\n"
        ));
        let daily = cases.into_iter().filter(|case| !case.is_nightly_only());
        daily.map(|case| case.name.split_once(' ').unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        daily("smp = [1, 2]\nisolation = ['none', 'vmm']"),
        ["[6.12, 1 CPU]", "[6.12, 2 CPUs, vmm]", "[6.1, 1 CPU, vmm]", "[6.1, 2 CPUs]"]
    );
    assert_eq!(daily("smp = [1, 2]"), ["[6.12, 1 CPU]", "[6.1, 2 CPUs]"]);
    assert_eq!(daily("isolation = ['none', 'vmm']"), ["[6.12, 1 CPU]", "[6.1, 1 CPU, vmm]"]);
    assert_eq!(daily(""), ["[6.12, 1 CPU]", "[6.1, 1 CPU]"]);
    let one = "nightly-kernels = ['6.1']\nisolation = ['none', 'vmm']";
    assert_eq!(daily(one), ["[6.12, 1 CPU]", "[6.12, 1 CPU, vmm]"]);
    assert_eq!(daily(&format!("smp = [1, 2]\n{one}")), ["[6.12, 1 CPU]", "[6.12, 2 CPUs, vmm]"]);
    let by_instructions = "smp = [2]\ndevices = ['-icount', 'shift=0']";
    assert_eq!(daily(by_instructions), ["[6.12, 2 CPUs]", "[6.1, 1 CPU]"]);
}

#[test]
fn a_case_reads_its_folder_and_what_its_guest_gets() {
    let (tests, cases) = host_case(
        "about = 'x'\n[guest]\nkernels = ['6.1']\nfiles = { '/a' = '../../lib/a.sh' }\n[[step]]\nrun = 'true'\n",
    );
    let reads = |file: &str| cases[0].reads(tests.path(), Path::new(file));
    assert!(reads("group/one/test.toml") && reads("group/one/cases/a") && reads("lib/a.sh"));
    assert!(reads("group/shared.sh") && !reads("group/two/test.toml") && !reads("lib/b.sh"));
}

#[test]
fn vmm_is_nightly_only_by_default() {
    let runs = |isolation: &str| {
        let (_tests, cases) = host_case(&format!(
            "about = 'x'\n[guest]\nkernels = ['6.1']\nkyozon = true\n{isolation}\n[[step]]\nrun = 'true'\n"
        ));
        cases.iter().map(|case| (case.name.clone(), case.is_nightly_only())).collect::<Vec<_>>()
    };
    let name = |rest: &str, extra| (format!("group/one [6.1, 1 CPU{rest}]"), extra);
    assert_eq!(runs(""), [name("", false), name(", vmm", true)]);
    assert_eq!(runs("isolation = ['none']"), [name("", false)]);
    assert_eq!(runs("isolation = ['vmm']"), [name(", vmm", false)]);
    let nightly = "isolation = ['vmm']\nnightly-kernels = ['6.1']";
    assert_eq!(runs(nightly), [name(", vmm", true)]);
}

#[test]
fn host_steps_must_meet_expectations() {
    assert_eq!(
        outcome("about = 'x'\n[[host]]\nrun = 'printf a; exit 2'\nstatus = 2\nstdout = '^a$'"),
        "Passed"
    );
    assert!(outcome("about = 'x'\n[[host]]\nrun = 'exit 1'").contains("ended with status 1, not 0"));
    assert!(outcome("about = 'x'\n[[host]]\nrun = 'echo a'\nstdout = 'b'").contains("no match"));
    assert!(outcome("about = 'x'\n[[host]]\nrun = 'echo a >&2; echo b >&2'\nstderr-lines = 1")
        .contains("2 lines"));
    assert!(outcome("about = 'x'\n[[host]]\nrun = 'sleep 9'\nlimit = 1")
        .contains("did not end within 1 s"));
}

#[test]
fn leftover_files_and_processes_fail() {
    assert!(outcome("about = 'x'\n[[host]]\nrun = 'touch $TMPDIR/left'")
        .contains("left temporary files"));
    let escaped =
        outcome("about = 'x'\n[[host]]\nrun = 'setsid sleep 3 >/dev/null 2>&1 & sleep 0.1'");
    assert!(escaped.contains("left processes running: sleep"), "{escaped}");
}

#[test]
fn tests_without_steps_are_refused() {
    let tests = tempfile::tempdir().unwrap();
    let file = tests.path().join("test.toml");
    for text in ["about = 'x'", "about = 'x'\nhots = 1", "about = 'x'\n[[step]]\nrun = 'true'"] {
        fs::write(&file, text).unwrap();
        assert!(cases(tests.path()).is_err(), "{text}");
    }
}

#[test]
fn adopted_kernels_are_run_each_or_skipped() {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let kernels = words(&["6.1", "adopted"]);
    assert_eq!(named(&kernels, &words(&["6.8", "6.14"])), ["6.1", "6.8", "6.14"]);
    assert_eq!(named(&kernels, &[]), ["6.1", "adopted"]);
    let variant = Variant {
        kernel: ADOPTED.into(),
        cpus: 1,
        isolation: Isolation::None,
        nightly_only: false,
    };
    let (_tests, mut cases) =
        host_case("about = 'x'\n[guest]\nkernels = ['adopted']\n[[step]]\nrun = 'true'\n");
    let mut case = cases.remove(0);
    case.variant = Some(variant);
    assert_eq!(
        case.run(true, None).unwrap(),
        Ending::Skipped("needs an adopted kernel: 'kyozon-lab adopt'")
    );
}
