use super::*;
use crate::table::tests::example;
use std::fs;

const WORDS: &str = "
notes = ['A note.']
[table.boot]
title = 'Boot of the image'
explanation = '''
From reset
to main.'''
columns = ['mmio']
[[summary]]
question = 'What does a boot cost?'
what = 'Boot'
ours = { table = 'boot', row = 'none', over = 'alone', unit = 'times alone' }
peer = { name = 'the paper', value = 2.5 }
[[summary]]
question = 'What else?'
what = 'Alone'
ours = { table = 'boot', row = 'alone' }
peer = { name = 'beside Linux', figure = { table = 'boot', row = 'default/none' } }
[[summary]]
question = 'What does a boot cost?'
what = 'Other'
ours = { table = 'absent', row = 'none' }
";

/// The pages of the example by name, with these words.
fn rendered(words: &str) -> impl Fn(&str) -> String {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("boot.json"), example().to_json().unwrap()).unwrap();
    fs::write(dir.path().join("pages.toml"), words).unwrap();
    let pages = pages(dir.path()).unwrap();
    move |name| pages.iter().find(|(file, _)| file == name).unwrap().1.clone()
}

#[test]
fn golden_front_groups_lines_by_question() {
    let expected = "# Results

Figures are medians; each table's page has the intervals. A ratio is this project's figure divided by the peer's. `make
bench` writes this page from the JSON files and `pages.toml` beside it.

## What does a boot cost?

| what | this project | best peer, or the paper | ratio | plot |
| --- | ---: | --- | ---: | --- |
| Boot | 2 times alone | the paper: 2.5 times alone | 0.8 | [plot](boot.svg) |
| Other | not measured |  |  | [plot](absent.svg) |

## What else?

| what | this project | best peer, or the paper | ratio | plot |
| --- | ---: | --- | ---: | --- |
| Alone | 91 instructions | beside Linux: 182 instructions | 0.5 | [plot](boot.svg) |

## Peers

- A note.

## Tables

| table | what is measured | date | machine |
| --- | --- | --- | --- |
| [boot](boot.md) | Boot of the image | 2024-12-31 | Some CPU |
";
    assert_eq!(rendered(WORDS)("README.md"), expected);
}

#[test]
fn golden_page() {
    let expected = "# Boot of the image

From reset to main.

| group | row | unit | n | median | interval | worst | mmio |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
| default | none | instructions | 3 | 182 | 180 to 190 | 190 | 2 |
|  | alone | instructions | 1 | 91 | 91 to 91 | 91 |  |

An interval is the 95 % confidence interval of the median, by order statistics; n counts samples, unless it names
something else. [boot.json](boot.json) also has `avg`.

- `default/none`: a|b

![Boot of the image](boot.svg)

- Command: `make bench TABLE=boot`
- Commit: `0123abc`, qemu 7.2
- Date: 2024-12-31T23:59:59Z
- Machine: Some CPU, load 0.25 at the start and 1.5 at the end

[All results](README.md)
";
    assert_eq!(rendered(WORDS)("boot.md"), expected);
}

#[test]
fn undescribed_tables_use_their_own_words() {
    let page = rendered("")("boot.md");
    assert!(page.starts_with("# Boot\n\nFrom reset to main.\n"), "{page}");
    assert!(page.contains("also has `avg`, `mmio`."), "{page}");
}

#[test]
fn unused_columns_are_absent() {
    let row = [Row::from_samples("none", "us", &[1.5]).unwrap()];
    assert!(rows(&row, &[]).0.starts_with("| row | unit | n | median | interval | worst |\n"));
    let row = [row[0].clone().counting("rounds")];
    assert!(rows(&row, &[]).0.contains("| 1 rounds | 1.5 |"));
}

#[test]
fn tables_have_at_most_eight_columns() {
    let row = Row::from_samples("none", "us", &[1.5]).unwrap().group("g");
    let row = [row.extra("a", 1.0).extra("b", 1.0).extra("c", 1.0).extra("low", 1.5)];
    let shown = ["a", "b", "absent"].map(String::from);
    let (text, absent) = rows(&row, &shown);
    assert!(text.starts_with("| group | row | unit | n | median | interval | a | b |\n"), "{text}");
    assert_eq!(absent, ["`avg`", "`worst`", "`c`"]);
}

#[test]
fn long_paragraphs_are_wrapped() {
    let text = wrap(&"word ".repeat(60), "- ");
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    assert!(text.starts_with("- word word") && text.lines().nth(1).unwrap().starts_with("  word"));
    assert_eq!(text.split_whitespace().count(), 61);
}

#[test]
fn same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let read = |name| fs::read_to_string(dir.path().join(name)).unwrap();
    render(dir.path()).unwrap();
    assert!(read("README.md").ends_with("\nNo table was measured yet.\n"));

    example().write(dir.path()).unwrap();
    render(dir.path()).unwrap();
    let first = (read("README.md"), read("boot.md"), read("boot.svg"));
    render(dir.path()).unwrap();
    assert_eq!(first, (read("README.md"), read("boot.md"), read("boot.svg")));

    fs::write(dir.path().join("bad.json"), "{}").unwrap();
    let error = render(dir.path()).unwrap_err().to_string();
    assert!(error.contains("bad.json: missing field"), "{error}");
    assert_eq!(first.0, read("README.md"));
}

#[test]
fn numbers() {
    for (value, expected) in [
        (0.0, "0"),
        (-3.0, "-3"),
        (1234567.0, "1234567"),
        (1234567.25, "1234567"),
        (2.75, "2.75"),
        (99.999, "100"),
        (1234.5678, "1235"),
        (0.0123456, "0.01235"),
        (0.0000123, "1.230e-5"),
    ] {
        assert_eq!(number(value), expected);
    }
}
