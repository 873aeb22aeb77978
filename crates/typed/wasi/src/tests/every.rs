//! Rules that hold for every function, tried on every function.

use std::vec;
use std::vec::Vec;

use super::{with, Test, OUT};
use crate::types::{FileType, Rights};
use crate::{Errno, Function, FUNCTIONS};

/// The arguments of a call that succeeds, and what they mean.
struct Call {
    function: Function,
    arguments: Vec<u64>,
    /// Which arguments are descriptors, with the rights that the call needs of each.
    descriptors: Vec<(usize, Rights)>,
    /// Which arguments are addresses, with the length of what is read or written there.
    pointers: Vec<usize>,
}

/// One call of each function. None depends on another.
fn calls(t: &mut Test<'_>) -> Vec<Call> {
    let out = u64::from(OUT);
    let [iov, one] = t.buffers(&[(0x200, 3)]);
    let [f, f_length] = t.text("d/g");
    let [new, new_length] = t.text("d/new");
    let [link, link_length] = t.text("d/link");
    let empty = t.files(|files| files.create(4, b"empty", FileType::Directory, b"")).unwrap();
    assert!(t.files(|files| files.nodes[empty].entries.is_empty()));
    let [empty, empty_length] = t.text("d/empty");
    let mut subscription = [0; 48];
    subscription[8] = 1;
    subscription[16] = 1;
    let poll = t.put(&subscription);
    let mut calls = Vec::new();
    let mut add = |function, arguments: &[u64], descriptors: &[_], pointers: &[usize]| {
        let (arguments, pointers) = (arguments.to_vec(), pointers.to_vec());
        calls.push(Call { function, arguments, descriptors: descriptors.to_vec(), pointers });
    };
    add(Function::ArgsGet, &[out, 0x400], &[], &[0, 1]);
    add(Function::ArgsSizesGet, &[out, out + 4], &[], &[0, 1]);
    add(Function::EnvironGet, &[out, 0x400], &[], &[0, 1]);
    add(Function::EnvironSizesGet, &[out, out + 4], &[], &[0, 1]);
    add(Function::ClockResGet, &[0, out], &[], &[1]);
    add(Function::ClockTimeGet, &[0, 0, out], &[], &[2]);
    add(Function::FdAdvise, &[1, 0, 0, 0], &[(0, Rights::FD_ADVISE)], &[]);
    add(Function::FdAllocate, &[1, 0, 1], &[(0, Rights::FD_ALLOCATE)], &[]);
    add(Function::FdClose, &[1], &[(0, Rights::NONE)], &[]);
    add(Function::FdDatasync, &[1], &[(0, Rights::FD_DATASYNC)], &[]);
    add(Function::FdFdstatGet, &[1, out], &[(0, Rights::NONE)], &[1]);
    add(Function::FdFdstatSetFlags, &[1, 0], &[(0, Rights::FD_FDSTAT_SET_FLAGS)], &[]);
    add(Function::FdFdstatSetRights, &[1, 0, 0], &[(0, Rights::NONE)], &[]);
    add(Function::FdFilestatGet, &[1, out], &[(0, Rights::FD_FILESTAT_GET)], &[1]);
    add(Function::FdFilestatSetSize, &[1, 9], &[(0, Rights::FD_FILESTAT_SET_SIZE)], &[]);
    add(Function::FdFilestatSetTimes, &[1, 0, 0, 1], &[(0, Rights::FD_FILESTAT_SET_TIMES)], &[]);
    let seek_read = Rights::FD_READ.or(Rights::FD_SEEK);
    add(Function::FdPread, &[1, iov, one, 0, out], &[(0, seek_read)], &[1, 4]);
    add(Function::FdPrestatGet, &[3, out], &[(0, Rights::NONE)], &[1]);
    add(Function::FdPrestatDirName, &[3, out, 5], &[(0, Rights::NONE)], &[1]);
    let seek_write = Rights::FD_WRITE.or(Rights::FD_SEEK);
    add(Function::FdPwrite, &[1, iov, one, 0, out], &[(0, seek_write)], &[1, 4]);
    add(Function::FdRead, &[1, iov, one, out], &[(0, Rights::FD_READ)], &[1, 3]);
    add(Function::FdReaddir, &[3, 0x400, 64, 0, out], &[(0, Rights::FD_READDIR)], &[1, 4]);
    let none = Rights::NONE;
    add(Function::FdRenumber, &[1, 0], &[(0, none), (1, none)], &[]);
    add(Function::FdSeek, &[1, 1, 0, out], &[(0, Rights::FD_SEEK)], &[3]);
    add(Function::FdSync, &[1], &[(0, Rights::FD_SYNC)], &[]);
    add(Function::FdTell, &[1, out], &[(0, none)], &[1]);
    add(Function::FdWrite, &[1, iov, one, out], &[(0, Rights::FD_WRITE)], &[1, 3]);
    let right = Rights::PATH_CREATE_DIRECTORY;
    add(Function::PathCreateDirectory, &[3, new, new_length], &[(0, right)], &[1]);
    let right = Rights::PATH_FILESTAT_GET;
    add(Function::PathFilestatGet, &[3, 1, link, link_length, out], &[(0, right)], &[2, 4]);
    let right = Rights::PATH_FILESTAT_SET_TIMES;
    let arguments = [3, 1, link, link_length, 1, 1, 5];
    add(Function::PathFilestatSetTimes, &arguments, &[(0, right)], &[2]);
    let rights = [(0, Rights::PATH_LINK_SOURCE), (4, Rights::PATH_LINK_TARGET)];
    add(Function::PathLink, &[3, 1, link, link_length, 3, new, new_length], &rights, &[2, 5]);
    let right = Rights::PATH_OPEN.or(Rights::PATH_CREATE_FILE).or(Rights::PATH_FILESTAT_SET_SIZE);
    let right = right.or(Rights::FD_DATASYNC).or(Rights::FD_SYNC);
    let arguments = [3, 1, link, link_length, 9, 0, 0, 18, out];
    add(Function::PathOpen, &arguments, &[(0, right)], &[2, 8]);
    let right = Rights::PATH_READLINK;
    let arguments = [3, link, link_length, 0x400, 9, out];
    add(Function::PathReadlink, &arguments, &[(0, right)], &[1, 3, 5]);
    let right = Rights::PATH_REMOVE_DIRECTORY;
    add(Function::PathRemoveDirectory, &[3, empty, empty_length], &[(0, right)], &[1]);
    let rights = [(0, Rights::PATH_RENAME_SOURCE), (3, Rights::PATH_RENAME_TARGET)];
    add(Function::PathRename, &[3, f, f_length, 3, new, new_length], &rights, &[1, 4]);
    let right = Rights::PATH_SYMLINK;
    add(Function::PathSymlink, &[f, f_length, 3, new, new_length], &[(2, right)], &[0, 3]);
    let right = Rights::PATH_UNLINK_FILE;
    add(Function::PathUnlinkFile, &[3, f, f_length], &[(0, right)], &[1]);
    add(Function::PollOneoff, &[poll, 0x400, 1, out], &[], &[0, 1, 3]);
    add(Function::ProcRaise, &[16], &[], &[]);
    add(Function::SchedYield, &[], &[], &[]);
    add(Function::RandomGet, &[0x400, 300], &[], &[0]);
    add(Function::SockAccept, &[2, 0, out], &[(0, Rights::SOCK_ACCEPT)], &[2]);
    let arguments = [2, iov, one, 0, out, out + 4];
    add(Function::SockRecv, &arguments, &[(0, Rights::FD_READ)], &[1, 4, 5]);
    add(Function::SockSend, &[2, iov, one, 0, out], &[(0, Rights::FD_WRITE)], &[1, 4]);
    add(Function::SockShutdown, &[2, 1], &[(0, Rights::SOCK_SHUTDOWN)], &[]);
    calls
}

/// Runs a test on each call, each on a fresh program.
fn each(test: impl Fn(&mut Test<'_>, &Call)) {
    for n in 0.. {
        let mut end = false;
        with(|t| {
            let calls = calls(t);
            match calls.get(n) {
                Some(call) => test(t, call),
                None => end = true,
            }
        });
        if end {
            break;
        }
    }
}

#[test]
fn each_function_has_a_call_that_succeeds() {
    let mut seen = vec![Function::ProcExit];
    with(|t| seen.extend(calls(t).iter().map(|call| call.function)));
    seen.sort_by_key(|function| *function as u8);
    assert_eq!(seen, FUNCTIONS);
    each(|t, call| t.succeed(call.function, &call.arguments));
}

#[test]
fn numbers_that_are_no_descriptors_are_refused() {
    each(|t, call| {
        for &(n, _) in &call.descriptors {
            for fd in [4, 8, 0x7fff_ffff, 0xffff_ffff] {
                let mut arguments = call.arguments.clone();
                arguments[n] = fd;
                t.fail(call.function, &arguments, Errno::Badf);
            }
        }
    });
}

#[test]
fn each_right_is_needed() {
    for right in (0..30).map(|bit| Rights(1 << bit)) {
        each(|t, call| {
            for &(n, rights) in &call.descriptors {
                let fd = call.arguments[n];
                let keep = t.wasi.table.get(fd as u32).unwrap().base.without(right);
                t.succeed(Function::FdFdstatSetRights, &[fd, keep.0, 0]);
                if rights.contains(right) {
                    t.fail(call.function, &call.arguments, Errno::Notcapable);
                }
            }
            if call.descriptors.iter().all(|(_, rights)| !rights.contains(right))
                && call.function != Function::FdFdstatSetRights
                && call.function != Function::FdTell
            {
                let polled = call.function == Function::PollOneoff;
                t.succeed(call.function, &call.arguments);
                assert!(!polled || t.bytes(0x408u64, 2) == [0, 0]);
            }
        });
    }
}

#[test]
fn pointers_outside_of_the_memory_are_refused_before_anything_is_done() {
    each(|t, call| {
        for &n in &call.pointers {
            for at in [0xffff, 0x1_0000, 0xffff_ffff] {
                let mut arguments = call.arguments.clone();
                arguments[n] = at;
                let before = t.files(|files| std::format!("{:?} {:?}", files.nodes, files.log));
                t.fail(call.function, &arguments, Errno::Fault);
                let after = t.files(|files| std::format!("{:?} {:?}", files.nodes, files.log));
                assert_eq!(before, after, "{:?}", call.function);
            }
        }
        if call.arguments.len() > 2 && matches!(call.function, Function::FdRead | Function::FdWrite)
        {
            for (at, length) in [(0xffff, 2), (0x1_0000, 1), (0xffff_ffff, 0xffff_ffff)] {
                let [buffers, count] = t.buffers(&[(0x200, 1), (at, length)]);
                let [fd, _, _, out] = call.arguments[..] else { unreachable!() };
                t.fail(call.function, &[fd, buffers, count, out], Errno::Fault);
            }
        }
    });
}

/// Whichever operation of a host fails, the program gets its error, and no handle is lost.
#[test]
fn errors_of_the_host_reach_the_program() {
    for step in 0..20 {
        each(|t, call| {
            t.wasi.host().fail = Some((step, Errno::Dquot));
            let error = t.call(call.function, &call.arguments);
            let fired = t.wasi.host().fail.take() == Some((0, Errno::Dquot));
            if call.function == Function::PollOneoff {
                // The error belongs to the subscription.
                assert_eq!(error, 0);
                assert_eq!(
                    t.bytes(0x408u64, 2),
                    [if step == 0 { Errno::Dquot as u8 } else { 0 }, 0]
                );
            } else if error != 0 {
                assert!(fired);
                assert_eq!(error, Errno::Dquot as u16, "{:?}", call.function);
            }
            if step == 0 {
                let local = [
                    Function::ArgsGet,
                    Function::ArgsSizesGet,
                    Function::EnvironGet,
                    Function::EnvironSizesGet,
                    Function::FdFdstatGet,
                    Function::FdFdstatSetRights,
                    Function::FdPrestatGet,
                    Function::FdPrestatDirName,
                    Function::PollOneoff,
                    Function::ProcRaise,
                ];
                assert_eq!(error == 0, local.contains(&call.function), "{:?}", call.function);
            }
        });
    }
}

/// Arguments without sense: no panic, and the program's other memory stays.
#[test]
fn random_arguments_end_in_errors() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut succeeded = 0;
    for _ in 0..200 {
        with(|t| {
            let calls = calls(t);
            for _ in 0..200 {
                let call = &calls[random() as usize % calls.len()];
                let mut arguments = call.arguments.clone();
                for argument in &mut arguments {
                    match random() % 8 {
                        0 => *argument = random() % 16,
                        1 => *argument = random(),
                        2 => *argument = 1 << (random() % 64),
                        3 => *argument = argument.wrapping_add(random() % 5).wrapping_sub(2),
                        _ => {}
                    }
                }
                // Half of the memory changes at will.
                let at = random() as usize % t.memory.len();
                t.memory[at] = random() as u8;
                let sizes = [Function::FdAllocate, Function::FdFilestatSetSize];
                let large = sizes.contains(&call.function) || call.function == Function::FdPwrite;
                let large = large || call.function == Function::FdSeek;
                if large && arguments.iter().any(|&argument| argument > 1 << 16) {
                    continue;
                }
                if call.function == Function::ProcRaise {
                    // Most signals end the program.
                    continue;
                }
                succeeded += usize::from(t.call(call.function, &arguments) == 0);
            }
        });
    }
    assert!(succeeded > 5000, "only {succeeded} calls succeeded");
}
