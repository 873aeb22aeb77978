use super::*;

fn image() -> Image {
    Image { file: "disk".into(), partition: None }
}

fn places(step: &Step) -> Vec<String> {
    step.operation.uses().iter().map(|(place, _)| place.to_string()).collect()
}

/// The error of a script.
fn error(script: &str) -> String {
    format!("{:#}", parse(script.as_bytes(), Some(&image()), true).err().expect("an error"))
}

#[test]
fn lines_are_split_as_the_shell_does() {
    let script = b"# comment\n\n  mkdir ':/a b' \":/c\\\"d\" :/e\\ f\\\n  :/g # more\r\n-rm :/bad\xff\ncp a ':/new\nline'\nls other:/\n";
    let steps = parse(script, Some(&image()), true).unwrap();
    let lines: Vec<_> = steps.iter().map(|step| (step.line, step.may_fail)).collect();
    assert_eq!(lines, [(3, false), (5, true), (6, false), (8, false)]);
    assert_eq!(places(&steps[0]), ["disk:/a b", "disk:/c\"d", "disk:/e f", "disk:/g"]);
    assert_eq!(places(&steps[1]), ["disk:/bad\u{fffd}"]);
    assert_eq!(places(&steps[2]), ["a", "disk:/new\nline"]);
    assert_eq!(places(&steps[3]), ["other:/"]);
    let writes: Vec<_> = steps[2].operation.uses().iter().map(|(_, write)| *write).collect();
    assert_eq!(writes, [false, true]);
}

#[test]
fn find_has_its_usual_options() {
    let steps = parse(b"find :/ -name '*.c' -type f", Some(&image()), true).unwrap();
    assert!(matches!(&steps[0].operation, Operation::Find { name: Some(_), kind: Some(_), .. }));
}

#[test]
fn a_mistake_is_named_by_its_line() {
    assert_eq!(error("ls :/\nlist :/"), "line 2: unrecognized subcommand 'list'");
    assert_eq!(error("ls"), "line 1: the following required arguments were not provided: <PATH>");
    assert_eq!(error("ls -q :/"), "line 1: unexpected argument '-q' found");
    assert_eq!(error("\nls ':/\nls"), "line 2: a quote does not end");
    assert_eq!(error("ls /etc"), "line 1: /etc is not in an image: write IMAGE:/PATH");
    assert_eq!(error("batch x"), "line 1: it is no operation of a batch");
    assert_eq!(error("mount x y"), "line 1: it is no operation of a batch");
    assert_eq!(error("- # nothing"), "line 1: an operation is missing behind the -");
    assert!(error("ls --help").starts_with("line 1: "));
    assert!(error("tar -x :/").contains("standard input has the batch"));
    let without = parse(b"ls :/", None, true).err().expect("an error");
    assert_eq!(format!("{without:#}"), "line 1: :/ has no image: write IMAGE:/PATH");
}

#[test]
fn an_end_of_a_quote_is_not_looked_for_without_limit() {
    let script = ["ls '", &"x\n".repeat(MAX_LINE)].concat();
    assert_eq!(error(&script), "line 1: a quote does not end");
}
