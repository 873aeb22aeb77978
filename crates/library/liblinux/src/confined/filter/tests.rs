use super::*;
use kyozon_bpf::{evaluate, ARCH};
use kyozon_devices::disk::Limits;

fn filter() -> Vec<sock_filter> {
    let disk = |fd, write| Disk { fd, write, limits: Limits::default(), qcow2: false };
    program(&[disk(7, true), disk(8, false)]).expect("a consistent filter")
}

fn allowed(number: i64, arguments: &[u64]) -> bool {
    evaluate(&filter(), ARCH, number as u32, arguments) == ALLOW
}

#[test]
fn only_the_listed_calls_pass() {
    let conditional = [
        libc::SYS_preadv,
        libc::SYS_pwritev,
        libc::SYS_pwrite64,
        libc::SYS_fdatasync,
        libc::SYS_fallocate,
        libc::SYS_mmap,
        libc::SYS_mprotect,
    ];
    for number in 0..600 {
        let listed = ALWAYS.contains(&number);
        assert_eq!(allowed(number, &[99, 99, libc::PROT_EXEC as u64, 0, 0, 0]), listed, "{number}");
        let exempt = conditional.contains(&number) || listed;
        for fd in [7, 8] {
            assert!(exempt || !allowed(number, &[fd, 0, 0, 0, fd, 0]), "{number}");
        }
    }
}

#[test]
fn a_disk_is_reached_through_its_own_descriptor() {
    let punch = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE) as u64;
    for (number, mode) in [
        (libc::SYS_preadv, 0),
        (libc::SYS_pwritev, 0),
        (libc::SYS_pwrite64, 0),
        (libc::SYS_fdatasync, 0),
        (libc::SYS_fallocate, punch),
    ] {
        let reads = [libc::SYS_preadv, libc::SYS_fdatasync].contains(&number);
        assert!(allowed(number, &[7, mode]), "{number}");
        assert_eq!(allowed(number, &[8, mode]), reads, "{number} of a disk that is only read");
        for fd in [0, 1, 2, 3, 6, 9, u64::from(u32::MAX)] {
            assert!(!allowed(number, &[fd, mode]), "{number} of {fd}");
        }
    }
    for mode in [0, libc::FALLOC_FL_COLLAPSE_RANGE as u64, punch & 2, punch | 1 << 4] {
        assert!(!allowed(libc::SYS_fallocate, &[7, mode]), "{mode}");
    }
}

#[test]
fn memory_is_not_executable_and_of_no_file() {
    let none = u64::from(u32::MAX);
    let (read, execute) = (libc::PROT_READ as u64, libc::PROT_EXEC as u64);
    assert!(allowed(libc::SYS_mmap, &[0, 4096, read, 0x22, none, 0]));
    assert!(allowed(libc::SYS_mmap, &[0, 4096, read, 0x22, u64::MAX, 0]));
    assert!(!allowed(libc::SYS_mmap, &[0, 4096, read | execute, 0x22, none, 0]));
    assert!(!allowed(libc::SYS_mmap, &[0, 4096, read, 1, 7, 0]));
    assert!(allowed(libc::SYS_mprotect, &[0, 4096, read]));
    assert!(!allowed(libc::SYS_mprotect, &[0, 4096, read | execute]));
}

#[test]
fn other_architectures_are_refused() {
    let futex = libc::SYS_futex as u32;
    assert_eq!(evaluate(&filter(), ARCH, futex, &[]), ALLOW);
    assert_eq!(evaluate(&filter(), 0x4000_0003, futex, &[]), KILL);
    // x32 has an extra bit in the number.
    assert_eq!(evaluate(&filter(), ARCH, futex | 0x4000_0000, &[]), KILL);
}
