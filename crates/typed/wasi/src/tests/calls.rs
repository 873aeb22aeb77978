//! What each function does, and the layouts of what it reads and writes.

use std::vec::Vec;

use super::{with, Test, OUT};
use crate::types::{FdFlags, FileType, OpenFlags, Rights};
use crate::{Errno, Exit, Function, FUNCTIONS};

const CREAT: u64 = OpenFlags::CREAT.0 as u64;
const DIRECTORY: u64 = OpenFlags::DIRECTORY.0 as u64;
const EXCL: u64 = OpenFlags::EXCL.0 as u64;
const TRUNC: u64 = OpenFlags::TRUNC.0 as u64;
const OUT64: u64 = OUT as u64;

#[test]
fn functions_are_found_by_name_and_number() {
    assert_eq!(FUNCTIONS.len(), 46);
    for (n, &function) in FUNCTIONS.iter().enumerate() {
        let signature = function.signature();
        assert_eq!(function as usize, n);
        assert_eq!(Function::from_number(n), Some(function));
        assert_eq!(Function::by_name(signature.name), Some(function));
        assert!(signature.parameters.len() <= crate::PARAMETERS);
        assert_eq!(signature.result, function != Function::ProcExit);
    }
    assert_eq!(Function::by_name("fd_open"), None);
    assert_eq!(Function::from_number(46), None);
}

#[test]
fn arguments_and_environment_are_strings_with_a_zero() {
    with(|t| {
        t.succeed(Function::ArgsSizesGet, &[OUT64, OUT64 + 4]);
        assert_eq!((t.u32(OUT), t.u32(OUT + 4)), (2, 11));
        t.succeed(Function::ArgsGet, &[OUT64, 0x200]);
        assert_eq!((t.u32(OUT), t.u32(OUT + 4)), (0x200, 0x208));
        assert_eq!(t.bytes(0x200u64, 12), b"program\0-x\0\xcc");
        t.succeed(Function::EnvironSizesGet, &[OUT64, OUT64 + 4]);
        assert_eq!((t.u32(OUT), t.u32(OUT + 4)), (1, 4));
        t.succeed(Function::EnvironGet, &[OUT64, 0x200]);
        assert_eq!(t.bytes(0x200u64, 4), b"A=1\0");
    });
}

#[test]
fn clocks_are_told_by_number() {
    with(|t| {
        t.succeed(Function::ClockResGet, &[3, OUT64]);
        assert_eq!(t.u64(OUT), 4);
        t.succeed(Function::ClockTimeGet, &[1, 0, OUT64]);
        assert_eq!(t.u64(OUT), 1000);
        t.succeed(Function::ClockTimeGet, &[0, 0, OUT64]);
        assert_eq!(t.u64(OUT), 1000 + (1 << 60));
        t.fail(Function::ClockTimeGet, &[4, 0, OUT64], Errno::Inval);
        t.fail(Function::ClockResGet, &[4, OUT64], Errno::Inval);
    });
}

#[test]
fn random_bytes_fill_exactly_the_buffer() {
    with(|t| {
        t.succeed(Function::RandomGet, &[0x301, 700]);
        assert_eq!(t.bytes(0x300u64, 1), [0xcc]);
        assert!(t.bytes(0x301u64, 700).iter().all(|&byte| byte == 0x5a));
        assert_eq!(t.bytes(0x301u64 + 700, 1), [0xcc]);
    });
}

#[test]
fn a_program_exits() {
    with(|t| {
        assert_eq!(t.try_call(Function::ProcExit, &[42]), Err(Exit(42)));
        t.succeed(Function::SchedYield, &[]);
        assert_eq!(t.log(), ["yield"]);
    });
}

#[test]
fn signals_have_their_default_action_on_the_program_only() {
    with(|t| {
        for ignored in [0, 16, 17, 22, 27] {
            t.succeed(Function::ProcRaise, &[ignored]);
        }
        for stops in 18..=21 {
            t.fail(Function::ProcRaise, &[stops], Errno::Notsup);
        }
        // The interface's number, and Linux's.
        for (signal, linux) in [(1, 1), (6, 6), (9, 9), (15, 15), (23, 24), (30, 31)] {
            assert_eq!(t.try_call(Function::ProcRaise, &[signal]), Err(Exit(128 + linux)));
        }
        t.fail(Function::ProcRaise, &[31], Errno::Inval);
        assert_eq!(t.log(), [""; 0]);
    });
}

#[test]
fn data_is_read_and_written_by_buffers() {
    with(|t| {
        let [at, count] = t.buffers(&[(0x200, 2), (0x300, 0), (0x400, 100)]);
        t.succeed(Function::FdRead, &[1, at, count, OUT64]);
        assert_eq!(t.u32(OUT), 5);
        assert_eq!((t.bytes(0x200u64, 2), t.bytes(0x400u64, 3)), (&b"he"[..], &b"llo"[..]));
        t.succeed(Function::FdPread, &[1, at, count, 3, OUT64]);
        assert_eq!(t.bytes(0x200u64, 2), b"lo");
        t.succeed(Function::FdTell, &[1, OUT64]);
        assert_eq!(t.u64(OUT), 5);
        let [text, length] = t.text("abc");
        let [at, count] = t.buffers(&[(text, length), (text, 1)]);
        t.succeed(Function::FdWrite, &[1, at, count, OUT64]);
        assert_eq!(t.u32(OUT), 4);
        t.succeed(Function::FdPwrite, &[1, at, count, 1, OUT64]);
        assert_eq!(t.files(|files| files.nodes[3].data.clone()), b"habcaabca");
        t.fail(Function::FdPread, &[1, at, count, 1 << 63, OUT64], Errno::Inval);
        t.fail(Function::FdPwrite, &[1, at, count, 1 << 63, OUT64], Errno::Inval);
        for function in [Function::FdPread, Function::FdPwrite] {
            t.fail(function, &[0, at, count, 0, OUT64], Errno::Spipe);
            t.fail(function, &[2, at, count, 0, OUT64], Errno::Spipe);
        }
        t.fail(Function::FdRead, &[3, at, count, OUT64], Errno::Isdir);
        t.fail(Function::FdWrite, &[3, at, count, OUT64], Errno::Notcapable);
    });
}

#[test]
fn buffers_are_limited_in_number_and_sum() {
    with(|t| {
        let at = t.buffers(&[(0x200, 0); 1024])[0];
        t.succeed(Function::FdRead, &[1, at, 1024, OUT64]);
        t.fail(Function::FdRead, &[1, at, 1025, OUT64], Errno::Inval);
        t.memory.resize(1 << 22, 0);
        let mut buffers = [(0, 1 << 22); 1024];
        let [at, count] = t.buffers(&buffers);
        t.fail(Function::FdRead, &[1, at, count, OUT64], Errno::Inval);
        buffers[0].1 -= 1;
        let [at, count] = t.buffers(&buffers);
        t.succeed(Function::FdRead, &[1, at, count, OUT64]);
    });
}

#[test]
fn offsets_move_by_three_bases() {
    with(|t| {
        let seek = |t: &mut Test<'_>, distance: i64, whence| {
            t.succeed(Function::FdSeek, &[1, distance as u64, whence, OUT64]);
            t.u64(OUT)
        };
        assert_eq!(seek(t, 3, 0), 3);
        assert_eq!(seek(t, -1, 1), 2);
        assert_eq!(seek(t, -2, 2), 3);
        t.fail(Function::FdSeek, &[1, -1i64 as u64, 0, OUT64], Errno::Inval);
        t.fail(Function::FdSeek, &[1, 0, 3, OUT64], Errno::Inval);
        t.fail(Function::FdSeek, &[1, 0, 0x100, OUT64], Errno::Inval);
        for (fd, error) in [(0, Errno::Spipe), (2, Errno::Spipe), (3, Errno::Isdir)] {
            t.fail(Function::FdSeek, &[fd, 0, 0, OUT64], error);
            t.fail(Function::FdTell, &[fd, OUT64], error);
        }
    });
}

#[test]
fn the_right_to_tell_allows_only_to_ask() {
    with(|t| {
        t.succeed(Function::FdFdstatSetRights, &[1, Rights::FD_TELL.0, 0]);
        t.succeed(Function::FdTell, &[1, OUT64]);
        t.succeed(Function::FdSeek, &[1, 0, 1, OUT64]);
        t.fail(Function::FdSeek, &[1, 1, 1, OUT64], Errno::Notcapable);
        t.fail(Function::FdSeek, &[1, 0, 0, OUT64], Errno::Notcapable);
    });
}

#[test]
fn files_are_advised_allocated_resized_and_synchronized() {
    with(|t| {
        t.succeed(Function::FdAdvise, &[1, 1, 2, 5]);
        t.fail(Function::FdAdvise, &[1, 1, 2, 6], Errno::Inval);
        t.fail(Function::FdAdvise, &[1, 1 << 63, 2, 0], Errno::Inval);
        t.fail(Function::FdAdvise, &[0, 1, 2, 0], Errno::Spipe);
        t.succeed(Function::FdDatasync, &[1]);
        t.succeed(Function::FdSync, &[3]);
        assert_eq!(t.log(), ["advise 3 1 2 Noreuse", "sync 3 true", "sync 0 false"]);
        t.succeed(Function::FdAllocate, &[1, 6, 2]);
        assert_eq!(t.files(|files| files.nodes[3].data.clone()), b"hello\0\0\0");
        t.fail(Function::FdAllocate, &[1, 0, 0], Errno::Inval);
        t.fail(Function::FdAllocate, &[1, 1, u64::MAX], Errno::Fbig);
        t.fail(Function::FdAllocate, &[1, 1, i64::MAX as u64], Errno::Fbig);
        t.fail(Function::FdAllocate, &[3, 0, 1], Errno::Notcapable);
        t.succeed(Function::FdFilestatSetSize, &[1, 2]);
        assert_eq!(t.files(|files| files.nodes[3].data.clone()), b"he");
        t.fail(Function::FdFilestatSetSize, &[1, 1 << 63], Errno::Fbig);
    });
}

#[test]
fn attributes_have_the_defined_layout() {
    with(|t| {
        t.succeed(Function::FdFilestatGet, &[1, OUT64]);
        let status: Vec<u64> = (0..8).map(|n| t.u64(OUT + 8 * n)).collect();
        // Device, serial number, type, links, size, three times.
        assert_eq!(status, [7, 3, 4, 1, 5, 1, 2, 3]);
        t.succeed(Function::FdFdstatGet, &[3, OUT64]);
        assert_eq!(t.bytes(OUT, 8), [3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(t.u64(OUT + 8), Rights::DIRECTORY.0);
        assert_eq!(t.u64(OUT + 16), (1 << 30) - 1);
        t.succeed(Function::FdFdstatSetFlags, &[1, FdFlags::APPEND.0.into()]);
        t.succeed(Function::FdFdstatGet, &[1, OUT64]);
        assert_eq!(t.bytes(OUT, 4), [4, 0, 1, 0]);
        t.fail(Function::FdFdstatSetFlags, &[1, FdFlags::SYNC.0.into()], Errno::Notsup);
        t.fail(Function::FdFdstatSetFlags, &[1, 32], Errno::Inval);
        t.succeed(Function::FdPrestatGet, &[3, OUT64]);
        assert_eq!(t.u64(OUT), 5 << 32);
        t.succeed(Function::FdPrestatDirName, &[3, OUT64, 5]);
        assert_eq!(t.bytes(OUT, 6), b"/data\0");
        t.fail(Function::FdPrestatDirName, &[3, OUT64, 4], Errno::Nametoolong);
        t.fail(Function::FdPrestatGet, &[1, OUT64], Errno::Badf);
        t.fail(Function::FdPrestatDirName, &[1, OUT64, 5], Errno::Badf);
    });
}

#[test]
fn times_are_kept_set_or_now() {
    with(|t| {
        let times =
            |t: &mut Test<'_>| t.files(|files| (files.nodes[3].accessed, files.nodes[3].modified));
        t.succeed(Function::FdFilestatSetTimes, &[1, 50, 60, 1]);
        assert_eq!(times(t), (50, 2));
        t.succeed(Function::FdFilestatSetTimes, &[1, 51, 60, 4]);
        assert_eq!(times(t), (50, 60));
        t.succeed(Function::FdFilestatSetTimes, &[1, 51, 61, 8 | 2]);
        assert_eq!(times(t), (1000, 1000));
        for flags in [3, 12, 16] {
            t.fail(Function::FdFilestatSetTimes, &[1, 0, 0, flags], Errno::Inval);
        }
        let [at, length] = t.text("d/link");
        t.succeed(Function::PathFilestatSetTimes, &[3, 1, at, length, 5, 6, 5]);
        assert_eq!(times(t), (5, 6));
        t.succeed(Function::PathFilestatSetTimes, &[3, 0, at, length, 7, 8, 5]);
        assert_eq!(times(t), (5, 6), "the link's own times were meant");
        t.fail(Function::PathFilestatSetTimes, &[3, 2, at, length, 7, 8, 5], Errno::Inval);
        t.fail(Function::PathFilestatSetTimes, &[3, 0, at, length, 7, 8, 3], Errno::Inval);
    });
}

#[test]
fn entries_are_listed_and_the_last_is_cut_off() {
    with(|t| {
        let d = t.open("d", 0, DIRECTORY).unwrap();
        let mut whole = Vec::new();
        for (next, inode, kind, name) in
            [(1u64, 4u64, 3u8, "."), (2, 0, 3, ".."), (3, 5, 4, "g"), (4, 6, 7, "link")]
        {
            whole.extend(next.to_le_bytes());
            whole.extend(inode.to_le_bytes());
            whole.extend((name.len() as u32).to_le_bytes());
            whole.extend([kind, 0, 0, 0]);
            whole.extend(name.as_bytes());
        }
        for length in 0..=whole.len() + 1 {
            t.memory.fill(0xcc);
            t.succeed(Function::FdReaddir, &[d, 0x400, length as u64, 0, OUT64]);
            let used = length.min(whole.len());
            assert_eq!(t.u32(OUT) as usize, used);
            assert_eq!(t.bytes(0x400u64, used), &whole[..used]);
            assert_eq!(t.bytes(0x400u64 + used as u64, 1), [0xcc]);
        }
        t.succeed(Function::FdReaddir, &[d, 0x400, 1000, 3, OUT64]);
        assert_eq!(t.u32(OUT), 28);
        t.succeed(Function::FdReaddir, &[d, 0x400, 1000, 4, OUT64]);
        assert_eq!(t.u32(OUT), 0);
        t.fail(Function::FdReaddir, &[1, 0x400, 1000, 0, OUT64], Errno::Notdir);
    });
}

#[test]
fn descriptors_are_closed_renumbered_and_reused() {
    with(|t| {
        let d = t.open("d", 0, DIRECTORY).unwrap();
        assert_eq!(d, 4);
        t.succeed(Function::FdRenumber, &[d, 0]);
        t.fail(Function::FdFdstatGet, &[d, OUT64], Errno::Badf);
        t.succeed(Function::FdFdstatGet, &[0, OUT64]);
        assert_eq!(t.memory[OUT as usize], FileType::Directory as u8);
        t.succeed(Function::FdRenumber, &[0, 0]);
        t.fail(Function::FdRenumber, &[0, 4], Errno::Badf);
        t.fail(Function::FdRenumber, &[4, 0], Errno::Badf);
        t.succeed(Function::FdClose, &[0]);
        t.fail(Function::FdClose, &[0], Errno::Badf);
        assert_eq!(t.open("f", 0, 0), Ok(0));
        for fd in 4..8 {
            assert_eq!(t.open("f", 0, 0), Ok(fd));
        }
        assert_eq!(t.open("fresh", 0, CREAT), Err(Errno::Mfile));
        assert_eq!(t.files(|files| files.find(0, b"fresh")), Err(Errno::Noent));
        t.fail(Function::SockAccept, &[2, 0, OUT64], Errno::Mfile);
    });
}

#[test]
fn files_are_opened_created_and_truncated() {
    with(|t| {
        let fd = t.open("new", 0, CREAT | EXCL).unwrap();
        t.succeed(Function::FdFdstatGet, &[fd, OUT64]);
        assert_eq!(t.u64(OUT + 8), Rights::FILE.0, "rights that mean nothing are dropped");
        assert_eq!(t.u64(OUT + 16), 0);
        t.succeed(Function::FdClose, &[fd]);
        assert_eq!(t.open("new", 0, CREAT | EXCL), Err(Errno::Exist));
        assert_eq!(t.open("dangling", 1, CREAT | EXCL), Err(Errno::Exist));
        assert_eq!(t.open("f", 0, TRUNC), Ok(4));
        assert_eq!(t.files(|files| files.nodes[3].data.len()), 0);
        assert_eq!(t.open("d", 0, CREAT | DIRECTORY), Err(Errno::Inval));
        assert_eq!(t.open("d", 0, 16), Err(Errno::Inval));
        assert_eq!(t.open("d", 2, 0), Err(Errno::Inval));
        assert_eq!(t.open_with(3, "f", 0, 0, Rights::ALL, 32), Err(Errno::Inval));
        assert_eq!(t.open("f", 0, DIRECTORY), Err(Errno::Notdir));
        assert_eq!(t.open("d", 0, 0), Err(Errno::Isdir), "it would be written");
        assert_eq!(t.open_with(3, "d", 0, 0, Rights::FD_READDIR, 0), Ok(5));
        assert_eq!(t.open_with(1, "f", 0, 0, Rights::NONE, 0), Err(Errno::Notdir));
        // A file that appends, and one without any right.
        let fd = t.open_with(3, "d/g", 0, 0, Rights::FD_WRITE, 1).unwrap();
        let [text, length] = t.text("!");
        let [at, count] = t.buffers(&[(text, length)]);
        t.succeed(Function::FdWrite, &[fd, at, count, OUT64]);
        assert_eq!(t.files(|files| files.nodes[5].data.clone()), b"inner!");
        t.fail(Function::FdRead, &[fd, at, count, OUT64], Errno::Notcapable);
    });
}

#[test]
fn rights_are_inherited_and_never_grow() {
    with(|t| {
        let below = Rights::PATH_OPEN.or(Rights::FD_READ);
        let d = t.open_with(3, "d", 0, DIRECTORY, below, 0).unwrap();
        assert_eq!(t.open_with(d, "g", 0, 0, Rights::FD_WRITE, 0), Err(Errno::Notcapable));
        assert_eq!(t.open_with(d, "g", 0, TRUNC, Rights::FD_READ, 0), Err(Errno::Notcapable));
        assert_eq!(t.open_with(d, "n", 0, CREAT, Rights::FD_READ, 0), Err(Errno::Notcapable));
        for flags in [FdFlags::DSYNC, FdFlags::RSYNC, FdFlags::SYNC] {
            let result = t.open_with(d, "g", 0, 0, Rights::FD_READ, flags.0.into());
            assert_eq!(result, Err(Errno::Notcapable));
            assert!(t.open_with(3, "f", 0, 0, Rights::FD_READ, flags.0.into()).is_ok());
            t.succeed(Function::FdClose, &[5]);
        }
        let [at, length] = t.text("g");
        let more = [d, 0, at, length, 0, 0, Rights::FD_WRITE.0, 0, OUT64];
        t.fail(Function::PathOpen, &more, Errno::Notcapable);
        let g = t.open_with(d, "g", 0, 0, Rights::FD_READ, 0).unwrap();
        t.fail(Function::FdFdstatSetRights, &[g, Rights::ALL.0, 0], Errno::Notcapable);
        t.fail(Function::FdFdstatSetRights, &[g, 0, Rights::FD_READ.0], Errno::Notcapable);
        t.fail(Function::FdFdstatSetRights, &[g, 1 << 40, 0], Errno::Notcapable);
        t.succeed(Function::FdFdstatSetRights, &[g, 0, 0]);
        let [at, count] = t.buffers(&[(0x200, 1)]);
        t.fail(Function::FdRead, &[g, at, count, OUT64], Errno::Notcapable);
    });
}

#[test]
fn nothing_changes_by_a_directory_that_is_read_only() {
    with(|t| {
        let read_only = Rights::READ_ONLY;
        t.succeed(
            Function::FdFdstatSetRights,
            &[3, Rights::DIRECTORY.and(read_only).0, read_only.0],
        );
        let fd = t.open_with(3, "d/g", 0, 0, read_only, 0).unwrap();
        let [at, count] = t.buffers(&[(0x200, 5)]);
        t.succeed(Function::FdRead, &[fd, at, count, OUT64]);
        t.fail(Function::FdWrite, &[fd, at, count, OUT64], Errno::Notcapable);
        t.fail(Function::FdFilestatSetSize, &[fd, 0], Errno::Notcapable);
        assert_eq!(t.open_with(3, "n", 0, CREAT, read_only, 0), Err(Errno::Notcapable));
        assert_eq!(t.open_with(3, "f", 0, TRUNC, read_only, 0), Err(Errno::Notcapable));
        let write = Rights::FD_WRITE;
        assert_eq!(t.open_with(3, "f", 0, 0, write, 0), Err(Errno::Notcapable));
        let [at, length] = t.text("d/g");
        t.fail(Function::PathUnlinkFile, &[3, at, length], Errno::Notcapable);
        t.fail(Function::PathRename, &[3, at, length, 3, at, length], Errno::Notcapable);
    });
}

#[test]
fn links_are_made_read_and_cut_off() {
    with(|t| {
        let [target, length] = t.text("../f");
        let [at, bytes] = t.text("d/second");
        t.succeed(Function::PathSymlink, &[target, length, 3, at, bytes]);
        for (room, used) in [(0, 0), (2, 2), (4, 4), (9, 4)] {
            t.memory[0x200..0x210].fill(0xcc);
            t.succeed(Function::PathReadlink, &[3, at, bytes, 0x200, room, OUT64]);
            assert_eq!(t.u32(OUT), used);
            assert_eq!(t.bytes(0x200u64, used as usize), &b"../f"[..used as usize]);
            assert_eq!(t.memory[0x200 + used as usize], 0xcc);
        }
        let [f, f_bytes] = t.text("f");
        t.fail(Function::PathReadlink, &[3, f, f_bytes, 0x200, 9, OUT64], Errno::Inval);
        let [absolute, absolute_bytes] = t.text("/etc");
        let arguments = [absolute, absolute_bytes, 3, at, bytes];
        t.fail(Function::PathSymlink, &arguments, Errno::Notcapable);
        t.fail(Function::PathSymlink, &[at, 0, 3, f, f_bytes], Errno::Noent);
        t.fail(Function::PathSymlink, &[f, f_bytes, 3, f, f_bytes], Errno::Exist);
        let [hard, hard_bytes] = t.text("hard");
        let through = [3, 1, at, bytes, 3, hard, hard_bytes];
        t.succeed(Function::PathLink, &through);
        assert_eq!(t.files(|files| files.find(0, b"hard")), Ok(3));
        t.fail(Function::PathLink, &through, Errno::Exist);
        let [other, other_bytes] = t.text("other");
        t.succeed(Function::PathLink, &[3, 0, at, bytes, 3, other, other_bytes]);
        let kind = t.files(|files| files.nodes[files.find(0, b"other").unwrap()].kind);
        assert_eq!(kind, FileType::SymbolicLink);
        t.fail(Function::PathLink, &[3, 2, at, bytes, 3, other, other_bytes], Errno::Inval);
    });
}

#[test]
fn sockets_receive_send_accept_and_shut_down() {
    with(|t| {
        let [at, count] = t.buffers(&[(0x200, 4)]);
        t.succeed(Function::SockRecv, &[2, at, count, 1, OUT64, OUT64 + 4]);
        t.succeed(Function::SockRecv, &[2, at, count, 2, OUT64, OUT64 + 4]);
        assert_eq!((t.u32(OUT), t.bytes(OUT + 4, 3)), (4, &[0, 0, 0xcc][..]));
        assert_eq!(t.bytes(0x200u64, 4), b"rece");
        t.wasi.host().cut = true;
        t.succeed(Function::SockRecv, &[2, at, count, 0, OUT64, OUT64 + 4]);
        assert_eq!((t.bytes(0x200u64, 4), t.bytes(OUT + 4, 2)), (&b"ived"[..], &[1, 0][..]));
        t.fail(Function::SockRecv, &[2, at, count, 4, OUT64, OUT64 + 4], Errno::Inval);
        t.succeed(Function::SockSend, &[2, at, count, 0, OUT64]);
        assert_eq!(t.u32(OUT), 4);
        t.fail(Function::SockSend, &[2, at, count, 1, OUT64], Errno::Inval);
        t.succeed(Function::SockAccept, &[2, 4, OUT64]);
        assert_eq!(t.u32(OUT), 4);
        t.succeed(Function::FdFdstatGet, &[4, OUT64]);
        assert_eq!(t.bytes(OUT, 4), [6, 0, 4, 0]);
        assert_eq!(t.u64(OUT + 8), Rights::SOCKET.0);
        t.fail(Function::SockAccept, &[2, 1, OUT64], Errno::Inval);
        t.succeed(Function::SockShutdown, &[4, 3]);
        t.fail(Function::SockShutdown, &[4, 0], Errno::Inval);
        t.fail(Function::SockShutdown, &[4, 4], Errno::Inval);
        let log = ["receive 1", "receive 2", "receive 0", "accept 13 4", "shutdown 3"];
        assert_eq!(t.log(), log);
        for fd in [0, 1, 3] {
            t.fail(Function::SockAccept, &[fd, 0, OUT64], Errno::Notsock);
            t.fail(Function::SockRecv, &[fd, at, count, 0, OUT64, OUT64], Errno::Notsock);
            t.fail(Function::SockSend, &[fd, at, count, 0, OUT64], Errno::Notsock);
            t.fail(Function::SockShutdown, &[fd, 1], Errno::Notsock);
        }
    });
}

/// A subscription: userdata, type, and what it contains.
fn subscription(userdata: u64, kind: u8, contents: &[(usize, u64)]) -> [u8; 48] {
    let mut bytes = [0xee; 48];
    bytes[..8].copy_from_slice(&userdata.to_le_bytes());
    bytes[8] = kind;
    for &(at, value) in contents {
        let room = &mut bytes[at..];
        match at {
            16 => room[..4].copy_from_slice(&(value as u32).to_le_bytes()),
            40 => room[..2].copy_from_slice(&(value as u16).to_le_bytes()),
            _ => room[..8].copy_from_slice(&value.to_le_bytes()),
        }
    }
    bytes
}

fn clock(userdata: u64, clock: u64, timeout: u64, flags: u64) -> [u8; 48] {
    subscription(userdata, 0, &[(16, clock), (24, timeout), (40, flags)])
}

fn descriptor(userdata: u64, kind: u8, fd: u64) -> [u8; 48] {
    subscription(userdata, kind, &[(16, fd)])
}

/// Polls, and returns userdata, error, type, bytes and flags of each event.
fn poll(t: &mut Test<'_>, subscriptions: &[[u8; 48]]) -> Vec<(u64, u16, u8, u64, u8)> {
    let at = t.put(&subscriptions.concat());
    let count = subscriptions.len() as u64;
    t.succeed(Function::PollOneoff, &[at, 0x400, count, OUT64]);
    let events = t.u32(OUT);
    (0..events)
        .map(|n| {
            let at = 0x400 + 32 * n;
            let event = t.bytes(at, 32).to_vec();
            let error = u16::from_le_bytes([event[8], event[9]]);
            (t.u64(at), error, event[10], t.u64(at + 16), event[24])
        })
        .collect()
}

#[test]
fn polling_waits_for_the_first_clock() {
    with(|t| {
        let events = poll(t, &[clock(1, 1, 500, 0), clock(2, 1, 1200, 1), clock(3, 1, 200, 0)]);
        assert_eq!(events, [(2, 0, 0, 0, 0), (3, 0, 0, 0, 0)]);
        assert_eq!(t.log(), ["wait [] Some(200)"]);
        let past = poll(t, &[clock(4, 1, 1, 1)]);
        assert_eq!(past, [(4, 0, 0, 0, 0)]);
        assert!(t.log().is_empty());
    });
}

#[test]
fn a_clock_that_can_be_set_is_read_again() {
    with(|t| {
        let later = (1 << 60) + 1000 + 2_500_000_000;
        assert_eq!(poll(t, &[clock(1, 0, later, 1)]), [(1, 0, 0, 0, 0)]);
        let wait = "wait [] Some(1000000000)";
        assert_eq!(t.log(), [wait, wait, "wait [] Some(500000000)"]);
        // A duration is one of the monotonic clock.
        assert_eq!(poll(t, &[clock(1, 0, 2_500_000_000, 0)]), [(1, 0, 0, 0, 0)]);
        assert_eq!(t.log(), ["wait [] Some(2500000000)"]);
    });
}

#[test]
fn polling_reports_descriptors_and_errors_of_subscriptions() {
    with(|t| {
        let events = poll(t, &[descriptor(1, 1, 0), descriptor(2, 1, 1), descriptor(3, 2, 0)]);
        assert_eq!(events, [(2, 0, 1, 5, 0), (3, 0, 2, 1, 0)]);
        let events = poll(t, &[descriptor(1, 1, 0)]);
        assert_eq!(t.log(), ["wait [12] None"]);
        assert_eq!(events, [(1, 0, 1, 1, 0)]);
        t.succeed(Function::FdFdstatSetRights, &[1, Rights::FD_READ.0, 0]);
        let events = poll(
            t,
            &[
                descriptor(1, 1, 77),
                descriptor(2, 1, 1),
                clock(3, 9, 1, 0),
                clock(4, 1, 1, 2),
                clock(5, 2, 1, 0),
            ],
        );
        let error = |error: Errno| error as u16;
        let expected = [
            (1, error(Errno::Badf), 1, 0, 0),
            (2, error(Errno::Notcapable), 1, 0, 0),
            (3, error(Errno::Inval), 0, 0, 0),
            (4, error(Errno::Inval), 0, 0, 0),
            (5, error(Errno::Notsup), 0, 0, 0),
        ];
        assert_eq!(events, expected);
        t.wasi.host().cut = true;
        assert_eq!(poll(t, &[descriptor(1, 1, 2)]), [(1, 0, 1, 8, 1)]);
    });
}

#[test]
fn polling_refuses_none_too_many_and_unknown_subscriptions() {
    with(|t| {
        let at = t.put(&subscription(1, 3, &[]));
        t.fail(Function::PollOneoff, &[at, 0x400, 0, OUT64], Errno::Inval);
        t.fail(Function::PollOneoff, &[at, 0x400, 1, OUT64], Errno::Inval);
        t.fail(Function::PollOneoff, &[at, 0x400, 257, OUT64], Errno::Inval);
        let most: Vec<_> = (0..256).map(|n| clock(n, 1, 0, 0)).collect();
        assert_eq!(poll(t, &most).len(), 256);
    });
}
