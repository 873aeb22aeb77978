use super::*;
use std::collections::BTreeSet;

fn results() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/results")
}

#[test]
fn committed_pages_are_rendered_from_the_json() {
    let pages = kyozon_results::pages(&results()).unwrap();
    for (name, text) in &pages {
        let committed = fs::read_to_string(results().join(name)).unwrap_or_default();
        assert!(committed == *text, "docs/results/{name} is stale: run kyozon-lab bench --render");
        assert!(!text.contains("not measured"), "{name}: a summary line names a missing row");
    }
    let rendered: BTreeSet<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    for entry in fs::read_dir(results()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let page = name.ends_with(".md") || name.ends_with(".svg");
        assert!(
            !page || rendered.contains(name.as_str()),
            "docs/results/{name}: no table has this page"
        );
    }
}

#[test]
fn quoted_figures_are_those_of_the_json() {
    let tree = results().join("../..");
    for (page, text) in kyozon_results::prose(&tree, &results()).unwrap() {
        let committed = fs::read_to_string(tree.join(&page)).unwrap();
        assert!(committed == text, "a figure in {page} is stale: run kyozon-lab bench --render");
    }
}

/// Whether they hold is for `make bench CHECK=1` to say.
#[test]
fn bounds_can_be_checked() {
    let report = check(&results(), None).unwrap();
    assert!(report.lines.len() > 200, "{report}");
    for line in &report.lines {
        assert!(line.measured.is_ok(), "{line}");
    }
}

#[test]
fn every_table_is_described() {
    for name in TABLES.iter().map(|(name, _)| *name).chain(["shm-paths"]) {
        described(&results(), name).unwrap();
    }
}

#[test]
fn slower_is_in_per_cent() {
    assert_eq!(slower_percent(1012.3456, 1000.0), 1.235);
}
