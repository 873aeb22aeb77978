//! Calls that reach the layer.

use super::*;
use kyozon_abi::events::{MONITOR_INDEX, STATUS_WORDS};
use kyozon_abi::layer::{Range, RepairRequest, RepairWord, MAX_REPAIR_WORDS};

#[test]
fn layer_calls_get_the_tasks_structures() {
    let mut s = served(2);
    let space = s.kernel.tasks[0].space;
    let at = TASK_HEAP_BASE + 0xf00;
    let words: [u64; STATUS_WORDS] = core::array::from_fn(|i| i as u64);
    assert!(space.write(&mut s.fake, at, &words));
    assert_eq!(s.call(PUBLISH, 3, [at, 0, 0, 0, 0, 0]).answer(), 0);
    assert_eq!(s.fake.published, [(3, words)]);
    assert_eq!(s.call(PUBLISH, MONITOR_INDEX as u64 + 1, [at, 0, 0, 0, 0, 0]).answer(), E_ARGUMENT);
    // A report across two pages.
    assert!(space.write(&mut s.fake, at, &[1 | 5 << 32, at + 0xfe, 5]));
    assert!(space.write(&mut s.fake, at + 0xf8, &[0x6568_0000_0000_0000, 0x6f_6c6c]));
    assert_eq!(s.call(REPORT, at, NONE).answer(), 0);
    assert_eq!(s.fake.lines, ["hello"]);
    assert!(space.write(&mut s.fake, at, &[1, at, 257]));
    assert_eq!(s.call(REPORT, at, NONE).answer(), E_ARGUMENT);
    // A repair, and the layer's answer.
    let mut words = [0; 49];
    words[..7].copy_from_slice(&[2, 0x1000, 1, 2, 0x2000, 3, 4]);
    assert!(space.write(&mut s.fake, at, &words));
    s.fake.answer = -3;
    assert_eq!(s.call(REPAIR, at, NONE).answer(), 3);
    let mut wanted = RepairRequest { count: 2, words: [RepairWord::default(); MAX_REPAIR_WORDS] };
    wanted.words[0] = RepairWord { address: 0x1000, expected: 1, value: 2 };
    wanted.words[1] = RepairWord { address: 0x2000, expected: 3, value: 4 };
    assert_eq!((s.fake.repairs[0].count, s.fake.repairs[0].words), (2, wanted.words));
    s.fake.answer = -5;
    assert_eq!(s.call(REPAIR, at, NONE).answer(), E_UNAVAILABLE);
    s.fake.answer = 0;
    assert_eq!(s.call(WINDOW, at, NONE).answer(), 0);
    let mut window = [0; 3];
    assert!(space.read(&mut s.fake, at, &mut window) && window == [1, 0x1000, 0x2000]);
    assert_eq!(s.call(WINDOW, TASK_INFO, NONE).answer(), E_ADDRESS);
    // Linux's registers, in the order of the structure.
    assert_eq!(s.call(REGISTERS, at, NONE).answer(), 0);
    let mut registers = [1; 20];
    assert!(space.read(&mut s.fake, at, &mut registers));
    assert_eq!((registers[0], registers[1], registers[19]), (7, 0, 0x400));
    assert_eq!(s.call(REGISTERS, TASK_INFO, NONE).answer(), E_ADDRESS);
    assert_eq!(s.call(REGISTERS, at, [REGISTERS_OF_ANOTHER, 0, 0, 0, 0, 0]).answer(), 0);
    let mut cpu = [0];
    assert!(space.read(&mut s.fake, at, &mut cpu));
    assert_eq!(cpu, [8]);
    assert_eq!((s.call(RESET, 0, NONE).answer(), s.fake.resets), (0, 1));
    assert_eq!((s.call(RESET, RESET_ONLY, NONE).answer(), s.fake.reset_how), (0, RESET_ONLY));
    assert_eq!(s.call(WATCH, 0x1000, [0x2000, 0x7000, 0, 0, 0, 0]).answer(), 0);
    assert_eq!(s.fake.watched, [(Range { base: 0x1000, bytes: 0x2000 }, 0x7000)]);
    // Watched writes, in the order of the structure.
    assert_eq!(s.call(WRITES, at, NONE).answer(), 0);
    let mut writes = [7; 27];
    assert!(space.read(&mut s.fake, at, &mut writes));
    assert_eq!((writes[..2].to_vec(), writes[2..14].to_vec()), (vec![2, 5], vec![0; 12]));
    assert_eq!(writes[14..], [1 | 3 << 32, 0x1008, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0]);
    assert_eq!(s.call(WRITES, TASK_INFO, NONE).answer(), E_ADDRESS);
    s.fake.answer = -5;
    assert_eq!(s.call(WATCH, 0x1000, [0x2000, 0, 0, 0, 0, 0]).answer(), E_UNAVAILABLE);
    assert_eq!(s.call(WRITES, at, NONE).answer(), E_UNAVAILABLE);
    assert_eq!(s.call(REGISTERS, at, NONE).answer(), E_UNAVAILABLE);
    assert_eq!(s.call(RESET, 0, NONE).answer(), E_UNAVAILABLE);
}
