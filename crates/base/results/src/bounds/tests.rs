use super::*;
use std::fs;

/// Checks the bounds against a table of rows in instructions, microseconds and bytes.
fn run(bounds: &str) -> Result<Report> {
    let row = |name, unit, samples: &[f64]| Row::from_samples(name, unit, samples).unwrap();
    let dir = tempfile::tempdir().unwrap();
    Table::new("boot", "Boot", "From reset to main.", "make bench")
        .row(row("none", "instructions", &[180.0, 182.0, 190.0]).group("default"))
        .row(row("none", "instructions", &[170.0]).group("fast"))
        .row(row("alone", "us", &[2.0]).extra("mmio", 3.0).extra("late_us", 1.0))
        .row(row("vm", "us", &[5.0, 5.0, 8.0]))
        .row(row("image", "bytes", &[0.0]))
        .write(dir.path())
        .unwrap();
    fs::write(dir.path().join("boot.bounds.toml"), bounds).unwrap();
    check(dir.path(), Some("boot"))
}

fn only(bounds: &str) -> Line {
    let report = run(&format!("[[bound]]\n{bounds}\nwhy = 'w'")).unwrap();
    assert_eq!(report.lines.len(), 1);
    assert_eq!(report.passed(), report.lines[0].pass);
    report.lines[0].clone()
}

fn error(bounds: &str) -> String {
    let error = format!("{:#}", run(bounds).unwrap_err());
    assert_eq!(error.lines().count(), 1, "{error}");
    error[error.find("boot.bounds.toml: ").unwrap() + 18..].to_string()
}

#[test]
fn bounds_hold_or_fail() {
    for (bound, pass) in [
        ("row = 'default/none'\nat_most = 182", true),
        ("row = 'default/none'\nat_most = 181.9", false),
        ("row = 'default/none'\nvalue = 'avg'\nat_least = 184\nat_most = 184", true),
        ("row = 'default/none'\nvalue = 'worst'\nat_least = 191", false),
        ("row = 'image'\nat_most = 0", true),
        ("row = 'alone'\nvalue = 'mmio'\nat_most = 3", true),
        ("row = 'alone'\nvalue = 'mmio'\nat_most = 2", false),
        ("ratio = ['vm', 'alone']\nat_most = 2.5", true),
        ("ratio = ['vm', 'alone']\nvalue = 'worst'\nat_most = 2.5", false),
    ] {
        assert_eq!(only(bound).pass, pass, "{bound}");
    }
    let line = only("ratio = ['vm', 'alone']\nat_least = 3\nat_most = 4");
    assert_eq!(line.measured, Ok(2.5));
    assert_eq!(
        line.to_string(),
        "FAIL boot: vm / alone median: 2.5000, at least 3 and at most 4 (w)"
    );
}

#[test]
fn bounds_on_missing_figures_fail() {
    for (bound, reason) in [
        ("row = 'absent'\nat_most = 1e9", "no row `absent`"),
        ("row = 'image'\nvalue = 'p99'\nat_most = 1e9", "`image` has no such value"),
        ("row = 'none'\nat_most = 1e9", "more than one row `none`"),
        ("row = 'image'\nvalue = 'n'\nat_least = 0", "`image` has no such value"),
        ("ratio = ['vm', 'absent']\nat_most = 1e9", "no row `absent`"),
        ("ratio = ['vm', 'alone']\nvalue = 'mmio'\nat_most = 1e9", "`vm` has no such value"),
        ("ratio = ['vm', 'image']\nat_most = 1e9", "ratio of `us` to `bytes`"),
        ("ratio = ['image', 'image']\nat_most = 1e9", "the ratio is not finite"),
    ] {
        let line = only(bound);
        assert!(!line.pass);
        assert_eq!(line.measured, Err(reason.into()));
    }
}

#[test]
fn times_and_rates_are_refused() {
    assert_eq!(
        error("[[bound]]\nrow = 'vm'\nat_most = 9\nwhy = 'w'"),
        "bound[0].row: `vm` is in `us`: bounds hold ratios and counts, not times and rates"
    );
    assert_eq!(
        error("[[bound]]\nrow = 'alone'\nvalue = 'late_us'\nat_most = 9\nwhy = 'w'"),
        "bound[0].row: `alone` is in `late_us`: bounds hold ratios and counts, not times and rates"
    );
    for unit in ["ns", "ms", "s", "µs", "us (host)", "MB/s", "events per second", "cycles/call"] {
        assert!(is_time_or_rate(unit), "{unit}");
    }
    for unit in ["ratio", "instructions", "modelled cycles", "events", "bytes", "exits/boot"] {
        assert!(!is_time_or_rate(unit), "{unit}");
    }
}

#[test]
fn invalid_files_are_refused() {
    let bound = |rest: &str| error(&format!("[[bound]]\nrow = 'image'\n{rest}"));
    assert_eq!(error("bound = []"), "bound: none");
    assert!(error("").contains("missing field `bound`"));
    assert!(error("[[bound]").contains("unclosed array table"));
    assert!(bound("at_most = 1\nwhy = 'w'\nslack = 1").contains("unknown field `slack`"));
    assert!(bound("at_most = 'x'\nwhy = 'w'").starts_with("bound[0].at_most: invalid type"));
    assert!(bound("at_most = 1").contains("missing field `why`"));
    assert_eq!(bound("at_most = 1\nwhy = ''"), "bound[0].why: empty");
    assert!(bound("why = 'w'").starts_with("bound[0].at_most: needs"));
    assert!(bound("at_most = inf\nwhy = 'w'").contains("finite"));
    assert!(bound("at_most = 1\nat_least = 2\nwhy = 'w'").contains("below `at_least`"));
    let both = "ratio = ['vm', 'vm']\nat_most = 1\nwhy = 'w'";
    assert!(bound(both).starts_with("bound[0].row: needs either"));
}

#[test]
fn tables_without_bounds_pass() {
    let dir = tempfile::tempdir().unwrap();
    assert!(check(dir.path(), None).unwrap().passed());
    assert!(check(dir.path(), Some("boot")).is_err());

    let bounds = "[[bound]]\nrow = 'none'\nat_most = 1\nwhy = 'w'";
    fs::write(dir.path().join("absent.bounds.toml"), bounds).unwrap();
    let report = check(dir.path(), None).unwrap();
    assert_eq!(
        report.to_string(),
        "FAIL absent: none median: the table is missing, at most 1 (w)\n1 bounds, 1 failed\n"
    );
    assert_eq!(check(dir.path(), Some("absent")).unwrap(), report);

    let row = Row::from_samples("none", "us", &[1.0]).unwrap();
    Table::new("boot", "t", "e", "c").row(row).write(dir.path()).unwrap();
    assert_eq!(check(dir.path(), Some("boot")).unwrap(), Report::default());

    fs::write(dir.path().join("absent.json"), "{").unwrap();
    assert!(check(dir.path(), None).unwrap_err().to_string().contains("absent.json: "));
}
