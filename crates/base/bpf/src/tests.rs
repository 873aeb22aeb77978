use super::*;

#[test]
fn jumps_reach_their_labels() {
    let mut filter = Filter::new("other");
    filter.jump(Condition::Equal(7), Some("seven"), None);
    filter.load_low(1);
    filter.jump(Condition::AnyOf(6), Some("other"), None);
    filter.load_high(1);
    filter.jump(Condition::AtLeast(2), None, Some("seven"));
    filter.label("other");
    filter.end(TRAP);
    filter.label("seven");
    filter.end(ALLOW);
    let program = filter.finish().unwrap();
    let evaluate = |number, argument| evaluate(&program, ARCH, number, &[0, argument]);
    assert_eq!(evaluate(7, 0), ALLOW);
    assert_eq!((evaluate(8, 1), evaluate(8, 4), evaluate(8, 2 << 32)), (ALLOW, TRAP, TRAP));
    assert_eq!(super::evaluate(&program, 0x4000_0003, 7, &[]), TRAP);
}

#[test]
fn dispatch_finds_the_label_of_each_number() {
    for count in 1..40 {
        let mut filter = Filter::new("other");
        let label = |i: u32| if i.is_multiple_of(3) { "trap" } else { "allow" };
        let cases = (0..count).rev().map(|i| (10 + 2 * i, label(i))).collect();
        filter.dispatch(cases, "other").unwrap();
        for (name, action) in [("trap", TRAP), ("allow", ALLOW), ("other", TRACE)] {
            filter.label(name);
            filter.end(action);
        }
        let program = filter.finish().unwrap();
        for number in 0..100 {
            let expected = match number {
                10.. if number % 2 == 0 && number < 10 + 2 * count => match (number - 10) / 2 {
                    i if i % 3 == 0 => TRAP,
                    _ => ALLOW,
                },
                _ => TRACE,
            };
            assert_eq!(evaluate(&program, ARCH, number, &[]), expected, "{number} of {count}");
        }
    }
}

#[test]
fn a_rule_that_does_not_hold_leaves_the_call_to_the_next() {
    let mut filter = Filter::new("other");
    filter.rule(7, &[Test::Is(0, 3), Test::Without(1, 6)], ALLOW);
    filter.rule(7, &[Test::Is(0, 4)], TRACE);
    filter.rule(8, &[], ALLOW);
    filter.label("other");
    filter.end(TRAP);
    let program = filter.finish().unwrap();
    let evaluate = |number, arguments: [u64; 2]| evaluate(&program, ARCH, number, &arguments);
    assert_eq!(
        (evaluate(7, [3, 9]), evaluate(7, [3, 2]), evaluate(7, [4, 0])),
        (ALLOW, TRAP, TRACE)
    );
    assert_eq!((evaluate(8, [0, 0]), evaluate(9, [3, 9])), (ALLOW, TRAP));
    // The high halves do not count.
    assert_eq!(evaluate(7, [3 | 1 << 32, 9 | 6 << 32]), ALLOW);
}

#[test]
fn invalid_jumps_are_refused() {
    let mut back = Filter::new("start");
    back.label("start");
    back.jump(Condition::Equal(1), Some("start"), None);
    assert!(back.finish().is_err());
    let mut far = Filter::new("end");
    (0..300).for_each(|_| far.end(ALLOW));
    far.label("end");
    far.end(TRAP);
    assert!(far.finish().is_err());
    assert!(Filter::new("nowhere").finish().is_err());
    assert!(Filter::new("other").dispatch(Vec::new(), "other").is_err());
    assert!(Filter::new("other").dispatch(vec![(1, "a"), (2, "b"), (1, "c")], "other").is_err());
}
