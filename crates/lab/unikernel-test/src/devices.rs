//! Cases of devices: a disk `disk` of 1 MiB, a read-only disk `read` of 64 KiB filled with 0x52, and a network `lan`.

use crate::Case;
use alloc::{vec, vec::Vec};
use core::sync::atomic::Ordering;
use core::time::Duration;
use kyozon_unikernel::block::{Disk, SECTOR};
use kyozon_unikernel::net::Port;
use kyozon_unikernel::{clock, device, me, peers, println, region, sleep, Error};

pub const CASES: &[Case] = &[
    ("disks", disks),
    ("disk-read-only", read_only),
    ("disk-errors", errors),
    ("disk-again", again),
    ("frames", frames),
    ("frames-lost", frames_lost),
    ("frames-times", frames_times),
];

static mut STATIC: [u8; 3 * SECTOR] = [0; 3 * SECTOR];

fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + i / 512 + seed) as u8).collect()
}

/// Written data is read back, from buffers in the heap and elsewhere, in one piece and in many.
fn disks() {
    let mut disk = Disk::open("disk").unwrap();
    assert_eq!((disk.sectors(), disk.is_read_only()), (2048, false));
    let all = pattern(1, 1 << 20);
    disk.write(0, &all).unwrap();
    disk.flush().unwrap();
    let mut back = vec![0; 1 << 20];
    disk.read(0, &mut back).unwrap();
    assert!(back == all);
    // A buffer on the stack.
    let mut piece = [0x77_u8; 2 * SECTOR];
    disk.write(100, &piece).unwrap();
    disk.read(99, &mut piece).unwrap();
    assert!(piece[..SECTOR] == all[99 * SECTOR..100 * SECTOR]);
    assert!(piece[SECTOR..].iter().all(|byte| *byte == 0x77));
    // SAFETY: nothing else uses the static.
    let fixed = unsafe { (&raw mut STATIC).as_mut() }.unwrap();
    disk.read(2045, fixed).unwrap();
    assert!(fixed[..] == all[2045 * SECTOR..]);
    disk.write(0, &all).unwrap();
    disk.flush().unwrap();
}

fn read_only() {
    let mut disk = Disk::open("read").unwrap();
    assert!(disk.is_read_only());
    assert_eq!(disk.write(0, &[0; SECTOR]), Err(Error::Right));
    let mut all = vec![0; 64 << 10];
    disk.read(0, &mut all).unwrap();
    assert!(all.iter().all(|byte| *byte == 0x52));
}

/// Sectors beyond the end, and parts of sectors.
fn errors() {
    let mut disk = Disk::open("disk").unwrap();
    let mut sector = vec![0; SECTOR];
    for sector_number in [2048, 1 << 40, u64::MAX] {
        assert_eq!(disk.read(sector_number, &mut sector), Err(Error::Argument));
        assert_eq!(disk.write(sector_number, &sector), Err(Error::Argument));
    }
    assert_eq!(disk.read(0, &mut sector[..100]), Err(Error::Argument));
    assert_eq!(disk.read(2047, &mut vec![0; 2 * SECTOR]), Err(Error::Argument));
    disk.read(2047, &mut sector).unwrap();
    assert_eq!(Disk::open("none").map(drop), Err(Error::Name));
    assert_eq!(Disk::open("lan").map(drop), Err(Error::Name));
    // A queue has one driver.
    assert_eq!(Disk::open("disk").map(drop), Err(Error::Exists));
    let names: Vec<_> = device::all().map(|device| device.info().kind).collect();
    assert_eq!(names, [2, 2, 1]);
}

/// A closed disk can be opened again, any number of times.
fn again() {
    let mut sector = vec![0; SECTOR];
    for i in 0..50 {
        let mut disk = Disk::open("disk").unwrap();
        disk.write(7, &[i; SECTOR]).unwrap();
        drop(disk);
        Disk::open("disk").unwrap().read(7, &mut sector).unwrap();
        assert!(sector.iter().all(|byte| *byte == i));
    }
}

/// Broadcasts frame `number`, of `bytes` bytes.
fn send(port: &mut Port, number: u32, bytes: usize) {
    let mac = port.mac();
    let end = clock::now() + 10_000_000_000;
    while !port.can_send() {
        assert!(clock::now() < end, "no room came");
        port.wait(Some(end));
    }
    port.send(bytes, |frame| fill(frame, mac, number)).unwrap();
}

fn fill(frame: &mut [u8], mac: [u8; 6], number: u32) {
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&mac);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..18].copy_from_slice(&number.to_le_bytes());
    frame[18..].fill(number as u8);
}

/// Receives the next frame, and checks its contents. Returns its number.
fn receive(port: &mut Port) -> Option<u32> {
    port.receive(|frame| {
        let number = u32::from_le_bytes(frame[14..18].try_into().unwrap());
        let ours = frame[12..14] == [0x88, 0xb5];
        assert!(!ours || frame[18..].iter().all(|byte| *byte == number as u8));
        number
    })
}

fn receive_soon(port: &mut Port) -> u32 {
    let end = clock::now() + 10_000_000_000;
    loop {
        if let Some(number) = receive(port) {
            return number;
        }
        assert!(clock::now() < end, "no frame came");
        port.wait(Some(end));
    }
}

/// Opens this guest's port, and waits until `guests` guests have opened theirs.
pub fn port_of(guests: usize) -> Port {
    let port = Port::open("lan").unwrap();
    let ready = board().words().unwrap().at(2);
    ready.fetch_add(1, Ordering::AcqRel);
    while ready.load(Ordering::Acquire) < guests as u64 {
        sleep::park(Some(clock::now() + 1_000_000));
    }
    port
}

fn board() -> region::Mapped {
    region::find("board").expect("kyozon run --region name=board,size=1M")
}

/// Two guests send frames of every length back and forth.
fn frames() {
    const LAST: u32 = 0x7_0000;
    let mut port = port_of(2);
    exchange(&mut port, 0, 1);
    // A frame of which the device was not notified is sent when its port is dropped.
    if me() == 0 {
        let mac = port.mac();
        assert_eq!(port.send_quietly(60, |frame| fill(frame, mac, LAST)), Some(()));
    } else {
        while receive_soon(&mut port) != LAST {}
    }
}

/// The guest `first` sends frames to the guest `second`, which answers each.
pub fn exchange(port: &mut Port, first: usize, second: usize) {
    let max = port.max_frame();
    assert!(max == 1514 && [first, second].contains(&me()));
    // Frames of other guests have other numbers.
    let soon = |port: &mut Port, number| while receive_soon(port) != number {};
    for round in 0..1000_u32 {
        let (question, answer) = (round | 0x5_0000, round | 0x6_0000);
        if me() == first {
            send(port, question, 18 + round as usize * 3 % (max - 17));
            soon(port, answer);
        } else {
            soon(port, question);
            send(port, answer, max);
        }
    }
    assert!(port.runs());
}

/// No guest receives: the sender goes on, and a late receiver finds the frames for which there was room.
fn frames_lost() {
    let mut port = port_of(peers());
    if me() == 0 {
        for number in 0..1000 {
            send(&mut port, number, 1514);
        }
        // The device has taken all frames.
        board().words().unwrap().at(1).store(1, Ordering::Release);
        sleep::unpark(1);
    } else {
        while board().load(1) != Some(1) {
            sleep::park(None);
        }
        sleep::sleep(Duration::from_millis(100));
        let got: Vec<_> = core::iter::from_fn(|| receive(&mut port)).collect();
        assert!(got.len() >= 64 && got[..64].iter().copied().eq(0..64), "{}", got.len());
    }
}

/// Prints the round-trip time of a frame.
fn frames_times() {
    let mut port = port_of(peers());
    let mut times = Vec::new();
    for round in 0..500 {
        let before = clock::now();
        if me() == 0 {
            send(&mut port, round, 1514);
            assert_eq!(receive_soon(&mut port), round);
            times.push(clock::now() - before);
        } else {
            assert_eq!(receive_soon(&mut port), round);
            send(&mut port, round, 1514);
        }
    }
    times.sort_unstable();
    if let Some(median) = times.get(250) {
        println!("frame round trip: {} us", median / 1000);
    }
}
