//! The exchange by messages: both machines have a port on one network, and the tender carries each frame. It needs two
//! guests of one run, `--vms 2 --net name=lan,mtu=65520`.

use crate::numbers::{check, fill, increment, Numbers, NUMBERS};
use crate::{Error, Samples, TIMEOUT};
use alloc::{boxed::Box, vec::Vec};
use kyozon_unikernel::net::Port;
use kyozon_unikernel::{clock, me, peers};

const BYTES: usize = NUMBERS * 4;
/// Bytes of an Ethernet header.
const HEADER: usize = 14;
/// An EtherType for experiments (IEEE 802, 9.2.3).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

pub fn measure(count: usize, _: usize) -> Samples {
    if peers() != 2 {
        return Err(Error::Guests);
    }
    let Ok(mut port) = Port::open("") else { return Err(Error::NoNetwork) };
    if port.max_frame() < HEADER + BYTES {
        return Err(Error::ShortFrames);
    }
    let mut numbers = Box::new([0; NUMBERS]);
    if me() == 0 {
        meet(&mut port, &mut numbers)?;
        (1..=count as u32).map(|round| ask(&mut port, &mut numbers, round)).collect()
    } else {
        answer(&mut port, &mut numbers, count as u32)?;
        Ok(Vec::new())
    }
}

/// Sends questions until the other guest answers.
fn meet(port: &mut Port, numbers: &mut Numbers) -> Result<(), Error> {
    let end = clock::now() + TIMEOUT;
    while clock::now() < end {
        fill(numbers, 0);
        send(port, numbers)?;
        if receive(port, numbers, clock::now() + 10_000_000) {
            return Ok(());
        }
    }
    Err(Error::NoAnswer)
}

fn ask(port: &mut Port, numbers: &mut Numbers, round: u32) -> Result<u64, Error> {
    let began = clock::now();
    fill(numbers, round);
    send(port, numbers)?;
    loop {
        if !receive(port, numbers, clock::now() + TIMEOUT) {
            return Err(Error::NoAnswer);
        }
        let right = check(numbers, round);
        let took = clock::now() - began;
        // Answers to questions of `meet` may come late.
        if numbers[0] > round {
            return right.then_some(took).ok_or(Error::WrongNumber);
        }
    }
}

/// Answers all questions up to the last.
fn answer(port: &mut Port, numbers: &mut Numbers, last: u32) -> Result<(), Error> {
    let mut round = None;
    while round != Some(last) {
        if !receive(port, numbers, clock::now() + TIMEOUT) {
            return Err(Error::NoAnswer);
        }
        round = Some(numbers[0]);
        increment(numbers);
        send(port, numbers)?;
    }
    Ok(())
}

fn send(port: &mut Port, numbers: &Numbers) -> Result<(), Error> {
    let mac = port.mac();
    let end = clock::now() + TIMEOUT;
    while !port.can_send() {
        if clock::now() > end {
            return Err(Error::NetworkFull);
        }
        port.wait(Some(end));
    }
    let sent = port.send(HEADER + BYTES, |frame| {
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&mac);
        frame[12..14].copy_from_slice(&ETHERTYPE);
        frame[HEADER..].copy_from_slice(bytemuck::cast_slice(&numbers[..]));
    });
    sent.ok_or(Error::NetworkFull)
}

/// Receives the experiment's next frame. Returns whether one came in time.
fn receive(port: &mut Port, numbers: &mut Numbers, end: u64) -> bool {
    loop {
        let came = port.receive(|frame| {
            let ours = frame.len() == HEADER + BYTES && frame[12..14] == ETHERTYPE;
            if ours {
                bytemuck::cast_slice_mut(&mut numbers[..]).copy_from_slice(&frame[HEADER..]);
            }
            ours
        });
        match came {
            Some(true) => return true,
            Some(false) => {}
            None if clock::now() > end => return false,
            None => port.wait(Some(end)),
        }
    }
}
