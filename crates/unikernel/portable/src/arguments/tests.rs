use super::*;

#[test]
fn numbers_are_clamped() {
    let words = ["4", "time", "1000000", "0"].map(String::from);
    let arguments = Arguments::parse(words.into_iter());
    assert_eq!([0, 1, 2, 3].map(|index| arguments.number(index, 100, 7)), [4, 100, 1, 7]);
    assert!(arguments.time && !Arguments::parse(core::iter::empty()).time);
}
