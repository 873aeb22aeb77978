//! Checks on what the workspace depends on, by cargo's own description of it.

use super::tools::cargo;
use super::{one_passed, Outcome, LIMIT};
use crate::process;
use anyhow::{ensure, Context, Result};
use serde::Deserialize;
use spdx::{Expression, ParseMode};
use std::fs;
use std::path::Path;

/// `cargo metadata`, as far as it is used.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    license: Option<String>,
    /// A registry or a repository; none for a folder.
    source: Option<String>,
    rust_version: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    source: Option<String>,
}

/// The rules of `deny.toml` that are also cargo-deny's.
#[derive(Deserialize)]
struct Rules {
    licenses: LicenceRules,
    bans: Bans,
}

#[derive(Deserialize)]
struct LicenceRules {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

/// A crate that only its wrappers may use.
#[derive(Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    wrappers: Vec<String>,
}

/// Every package has an allowed licence and comes from a registry, and kernel code stays apart.
pub(super) fn licences(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let path = tree.join("deny.toml");
    let rules = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let rules: Rules = toml::from_str(&rules).with_context(|| path.display().to_string())?;
    let metadata = metadata(tree)?;
    report(metadata.packages.iter().flat_map(|package| rules.broken_by(package)).collect())?;
    Ok(one_passed(&format!("{} packages", metadata.packages.len())))
}

/// No package needs a newer Rust than the workspace says. Clippy checks the workspace's own code.
pub(super) fn rust_version(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let metadata = metadata(tree)?;
    let own = metadata.packages.iter().find(|p| metadata.workspace_members.contains(&p.id));
    let floor = own.and_then(|package| package.rust_version.as_deref());
    let floor = floor.context("the workspace has no rust-version")?;
    report(metadata.packages.iter().filter_map(|package| package.newer_than(floor)).collect())?;
    Ok(one_passed(floor))
}

fn report(problems: Vec<String>) -> Result<()> {
    ensure!(problems.is_empty(), "{}", problems.join("; "));
    Ok(())
}

/// The packages of `Cargo.lock` that are compiled for Linux or for no operating system.
fn metadata(tree: &Path) -> Result<Metadata> {
    let mut command = cargo(tree);
    command.args(["metadata", "--format-version=1", "--locked", "--offline", "--all-features"]);
    command.args(["--filter-platform=x86_64-unknown-linux-gnu"]);
    command.args(["--filter-platform=x86_64-unknown-none"]);
    let output = process::run_ok(&mut command, LIMIT)?;
    serde_json::from_str(&output).context("the output of cargo metadata")
}

impl Rules {
    /// What the package does that the rules do not allow.
    fn broken_by(&self, package: &Package) -> Vec<String> {
        let Package { name, source, .. } = package;
        let mut broken = Vec::new();
        let mut rule = |holds: bool, problem: String| {
            if !holds {
                broken.push(problem);
            }
        };
        if let Some(source) = source {
            rule(source.starts_with("registry+"), format!("{name} comes from {source}"));
            let licence = package.license.as_deref().unwrap_or("none");
            rule(self.allows(name, licence), format!("{name}: licence {licence} is not allowed"));
        }
        for used in &package.dependencies {
            let ban = self.bans.deny.iter().find(|ban| ban.name == used.name);
            let wraps = ban.is_none_or(|ban| ban.wrappers.contains(name));
            rule(wraps, format!("{name} may not use {}", used.name));
            let any = source.is_none() && used.source.is_some() && used.req == "*";
            rule(!any, format!("{name} takes any version of {}", used.name));
        }
        broken
    }

    fn allows(&self, package: &str, licence: &str) -> bool {
        let exception = self.licenses.exceptions.iter().find(|e| e.name == package);
        let more = exception.map_or(&[][..], |exception| &exception.allow);
        let allowed = |id: &str| self.licenses.allow.iter().chain(more).any(|known| known == id);
        // Older packages separate licences by a slash.
        Expression::parse_mode(licence, ParseMode::LAX).is_ok_and(|licence| {
            licence.evaluate(|needed| match (&needed.addition, needed.license.id()) {
                (None, Some(licence)) => allowed(licence.name),
                // By its whole name, as `Apache-2.0 WITH LLVM-exception`.
                (Some(_), Some(_)) => allowed(&needed.to_string()),
                (_, None) => false,
            })
        })
    }
}

impl Package {
    fn newer_than(&self, floor: &str) -> Option<String> {
        let needed = self.rust_version.as_deref()?;
        (numbers(needed) > numbers(floor))
            .then(|| format!("{} needs Rust {needed}, the workspace says {floor}", self.name))
    }
}

/// The numbers of a version; absent ones are 0.
fn numbers(version: &str) -> [u32; 3] {
    let mut numbers = [0; 3];
    for (number, text) in numbers.iter_mut().zip(version.split(['.', '-', '+'])) {
        *number = text.parse().unwrap_or(0);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
        licenses = { allow = ["MIT", "Apache-2.0"], exceptions = [
            { crate = "header", allow = ["MPL-2.0", "Apache-2.0 WITH LLVM-exception"] }] }
        bans = { deny = [{ crate = "kernel", wrappers = ["wrapper"] }] }
    "#;

    fn broken(package: &str) -> Vec<String> {
        let rules: Rules = toml::from_str(RULES).unwrap();
        rules.broken_by(&serde_json::from_str(package).unwrap())
    }

    fn package(name: &str, licence: &str, source: &str, used: &str) -> String {
        format!(
            r#"{{"id": "{name}", "name": "{name}", "license": {licence}, "source": {source},
            "rust_version": null, "dependencies": [{used}]}}"#
        )
    }

    #[test]
    fn a_licence_must_be_allowed() {
        let of = |name, licence| broken(&package(name, licence, r#""registry+x""#, "")).len();
        assert_eq!(of("a", r#""MIT""#), 0);
        assert_eq!(of("a", r#""MIT/Unlicense""#), 0);
        assert_eq!(of("a", r#""Apache-2.0 WITH LLVM-exception OR MIT""#), 0);
        assert_eq!(of("a", r#""MIT AND GPL-2.0-only""#), 1);
        assert_eq!(of("a", "null"), 1);
        assert_eq!(of("a", r#""nonsense""#), 1);
        assert_eq!(of("a", r#""MPL-2.0""#), 1);
        assert_eq!(of("header", r#""MPL-2.0""#), 0);
        // An exception of a licence is allowed by its whole name only.
        assert_eq!(of("a", r#""Apache-2.0 WITH LLVM-exception""#), 1);
        assert_eq!(of("header", r#""Apache-2.0 WITH LLVM-exception""#), 0);
        assert_eq!(of("header", r#""MPL-2.0 WITH LLVM-exception""#), 1);
    }

    #[test]
    fn packages_come_from_a_registry_or_the_workspace() {
        assert_eq!(broken(&package("a", r#""MIT""#, r#""git+x""#, "")), ["a comes from git+x"]);
        assert!(broken(&package("a", "null", "null", "")).is_empty());
    }

    #[test]
    fn kernel_code_stays_apart() {
        let used = r#"{"name": "kernel", "req": "*", "source": null}"#;
        assert!(broken(&package("wrapper", "null", "null", used)).is_empty());
        assert_eq!(broken(&package("a", "null", "null", used)), ["a may not use kernel"]);
        let used = r#"{"name": "b", "req": "*", "source": "registry+x"}"#;
        assert_eq!(broken(&package("a", "null", "null", used)), ["a takes any version of b"]);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(numbers("1.100") > numbers("1.85.1"));
        assert_eq!(numbers("1.85"), numbers("1.85.0"));
    }
}
