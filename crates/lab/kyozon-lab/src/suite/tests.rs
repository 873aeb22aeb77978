use super::files::{committed, is_text};
use super::tools::count_results;
use super::*;

#[test]
fn results_add_up() {
    let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\nnoise\n\
                test result: FAILED. 1 passed; 2 failed; 0 ignored\n";
    assert_eq!(count_results(text).unwrap(), Count { passed: 4, failed: 2, skipped: 1 });
}

#[test]
fn programs_are_not_text() {
    assert!(is_text("共存\n".as_bytes()) && is_text(b""));
    assert!(!is_text(b"\x7fELF\x02\x01\x01\0") && !is_text(b"caf\xe9"));
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = committed(tree, "src").unwrap();
    assert!(files.iter().any(|(name, text)| name == "src/suite.rs" && is_text(text)));
}

#[test]
fn a_test_runs_once_more_for_a_defect_of_qemu_alone() {
    use std::cell::Cell;
    let runs = Cell::new(0);
    let mut reasons = Vec::new();
    let stale = || Err::<(), _>(anyhow!("a step failed").context(StaleBreakpoint).context("x"));
    let outcome = once_more(
        || {
            runs.set(runs.get() + 1);
            stale()
        },
        |error| reasons.push(format!("{error:#}")),
    );
    assert!(outcome.is_err() && runs.get() == 2, "{} runs", runs.get());
    assert_eq!(reasons, [format!("x: {StaleBreakpoint}: a step failed")]);

    let runs = Cell::new(0);
    let second = || {
        runs.set(runs.get() + 1);
        if runs.get() == 1 {
            stale()
        } else {
            Ok(())
        }
    };
    once_more(second, |_| ()).unwrap();

    let mut reasons = 0;
    let deaf = || Err::<(), _>(anyhow!("it does not answer any more").context(DeafCpu));
    assert!(once_more(deaf, |_| reasons += 1).is_err() && reasons == 1);

    let never = |_: &Error| panic!("it must not run again");
    let runs = Cell::new(0);
    let other = || {
        runs.set(runs.get() + 1);
        Err::<(), _>(anyhow!("Oops: int3"))
    };
    assert!(once_more(other, never).is_err() && runs.get() == 1);
}
