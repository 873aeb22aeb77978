//! Without a GNU assembler there is one clear message.

use kyozon_typed_asm::assemble;

/// The only test of this program, because it changes the environment.
#[test]
fn a_missing_assembler_is_named() {
    std::env::set_var("KYOZON_AS", "/nonexistent/as");
    let error = assemble(".func f ()\n.return\n", "f.s").expect_err("there is no assembler");
    assert_eq!(
        error.to_string(),
        "f.s: /nonexistent/as not found: install binutils, or set KYOZON_AS to a GNU assembler"
    );
    std::env::set_var("KYOZON_AS", "/bin/false");
    let error = assemble(".func f ()\n.return\n", "f.s").expect_err("it fails");
    assert!(error.to_string().starts_with("f.s: /bin/false failed: "), "{error}");
    let left = std::fs::read_dir(std::env::temp_dir()).expect("the folder can be read");
    let prefix = format!("kyozon-asm-{}-", std::process::id());
    let names = left.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    assert_eq!(names.filter(|name| name.starts_with(&prefix)).count(), 0, "files are left behind");
}
