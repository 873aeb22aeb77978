//! Programs that the checker must accept, and programs that it must refuse: one file each, in `typed/accept` and
//! `typed/reject`. A new case is a new file.
//!
//! The comments at the top of a file say the rest:
//!
//! - `# expect: REGEX` matches the message of a refused program: the checker's or the assembler's.
//! - `# patch: OFFSET BYTE...` overwrites bytes of the file (hexadecimal) before the check.
//! - `# host: thunks` makes the host refuse indirect branches of the program's own; `# host: tracking` makes it demand
//!   endbr64 where indirect branches lead.

use std::path::{Path, PathBuf};

use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_asm::{assemble, assemble_with_lines, disassemble};
use kyozon_typed_checker::program::Host;
use regex::Regex;

/// The `.s` files of a folder, sorted.
fn cases(folder: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/typed").join(folder);
    let entries = std::fs::read_dir(&path).expect("the folder of cases can be read");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("the folder of cases can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "s"))
        .collect();
    files.sort();
    files
}

/// What follows `# KEY: ` in the comments of a source.
fn comments<'a>(source: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    let prefix = format!("# {key}: ");
    source.lines().filter_map(move |line| line.strip_prefix(&prefix)).map(str::trim)
}

/// Overwrites bytes as a `# patch:` comment says.
fn patch(file: &mut [u8], comment: &str) {
    let mut words = comment.split_whitespace();
    let offset: usize = words.next().and_then(|n| n.parse().ok()).expect("patch: an offset");
    for (n, word) in words.enumerate() {
        file[offset + n] = u8::from_str_radix(word, 16).expect("patch: bytes in hexadecimal");
    }
}

/// The message with which a source is refused, if it is.
fn verdict(source: &str, name: &str, arena: &mut Arena) -> Result<(), String> {
    let (module, lines) = assemble_with_lines(source, name).map_err(|error| error.to_string())?;
    let mut file = module.to_bytes();
    comments(source, "patch").for_each(|comment| patch(&mut file, comment));
    let mut host =
        Host { region: 0x1000_0000, reserved: 40 << 30, indirect_branches: true, tracking: false };
    for comment in comments(source, "host") {
        match comment {
            "thunks" => host.indirect_branches = false,
            "tracking" => host.tracking = true,
            _ => panic!("{name}: a host that the test does not know: {comment}"),
        }
    }
    match verify(&file, host, arena) {
        Ok(_) => Ok(()),
        Err(error) => Err(lines.explain(&error).to_string()),
    }
}

#[test]
fn good_programs_are_accepted() {
    let mut arena = Arena::new(64, 1 << 20);
    let mut wrong = Vec::new();
    let files = cases("accept");
    assert!(files.len() >= 50, "the accepted programs are missing");
    for path in files {
        let source = std::fs::read_to_string(&path).expect("a case can be read");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Err(message) = verdict(&source, &name, &mut arena) {
            wrong.push(message);
        }
    }
    assert!(wrong.is_empty(), "good programs were refused:\n{}", wrong.join("\n"));
}

#[test]
fn bad_programs_are_refused_with_the_right_message() {
    let mut arena = Arena::new(64, 1 << 20);
    let mut wrong = Vec::new();
    let files = cases("reject");
    assert!(files.len() >= 150, "the refused programs are missing");
    for path in files {
        let source = std::fs::read_to_string(&path).expect("a case can be read");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let expected = comments(&source, "expect").next();
        let expected = expected.unwrap_or_else(|| panic!("{name}: it has no `# expect: REGEX`"));
        let regex = Regex::new(expected).unwrap_or_else(|error| panic!("{name}: {error}"));
        match verdict(&source, &name, &mut arena) {
            Ok(()) => wrong.push(format!("{name}: accepted, expected: {expected}")),
            Err(message) if regex.is_match(&message) => (),
            Err(message) => wrong.push(format!("{message}\n    expected: {expected}")),
        }
    }
    assert!(wrong.is_empty(), "{} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_disassembled_program_assembles_to_the_same_file() {
    let mut wrong = Vec::new();
    for path in cases("accept") {
        let source = std::fs::read_to_string(&path).expect("a case can be read");
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = assemble(&source, &name).expect("an accepted case assembles").to_bytes();
        let text = disassemble(&file).expect("an accepted case can be disassembled");
        match assemble(&text, "again") {
            Ok(again) if again.to_bytes() == file => (),
            Ok(_) => wrong.push(format!("{name}: another file\n{text}")),
            Err(error) => wrong.push(format!("{name}: {error}\n{text}")),
        }
    }
    assert!(wrong.is_empty(), "{} files changed:\n{}", wrong.len(), wrong.join("\n"));
}
