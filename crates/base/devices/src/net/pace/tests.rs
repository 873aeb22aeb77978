use super::*;

const SIZE: usize = 256;

#[test]
fn many_packets_without_a_pause_are_held() {
    let pace = Pace::default();
    for _ in 0..MAX_PACKETS - 1 {
        assert!(!pace.passed_on(1, 1500, 0) && !pace.is_holding());
    }
    assert!(pace.passed_on(1, 1500, 0), "the thread has to know");
    assert_eq!((pace.is_holding(), pace.packets(SIZE), pace.packets(8)), (true, 32, 1));
    assert!(!pace.passed_on(MAX_PACKETS, 1500 * MAX_PACKETS, 0), "once");
    // Larger packets are fewer, and the largest do not wait.
    pace.passed_on(MAX_PACKETS, (16 << 10) * MAX_PACKETS, 0);
    assert_eq!(pace.packets(SIZE), 4);
    pace.passed_on(MAX_PACKETS, (64 << 10) * MAX_PACKETS, 0);
    assert_eq!((pace.is_holding(), pace.packets(SIZE)), (false, 1));
}

#[test]
fn a_guest_that_pauses_rings_for_each_packet() {
    let pace = Pace::default();
    for turn in 0..10 {
        assert!(!pace.pause());
        pace.passed_on(MAX_PACKETS - 1, 1500, turn);
        assert!(!pace.is_holding());
    }
    pace.passed_on(1, 1500, 9);
    assert!(pace.is_holding() && pace.pause());
}

#[test]
fn a_quiet_guest_rings_for_each_packet_again() {
    let pace = Pace::default();
    pace.passed_on(MAX_PACKETS, 1500, 0);
    assert!(!pace.tick(), "packets were passed on");
    assert!(pace.tick() && pace.is_holding());
    pace.passed_on(1, 1500, 0);
    assert!(!pace.tick() && pace.tick() && pace.is_holding());
    assert!(pace.tick() && !pace.is_holding());
}
