//! The exchange by messages: both machines have a port of one network, and the tender carries each frame. Two guests of
//! a run, `--vms 2 --net name=lan,mtu=65520`.

use crate::numbers::{check, fill, raise, Numbers, NUMBERS};
use crate::{Samples, PATIENCE};
use alloc::{boxed::Box, vec::Vec};
use kyozon_unikernel::net::Port;
use kyozon_unikernel::{clock, me, peers};

const BYTES: usize = NUMBERS * 4;
/// Bytes of an Ethernet header.
const HEADER: usize = 14;
/// An EtherType for experiments (IEEE 802, 9.2.3).
const KIND: [u8; 2] = [0x88, 0xb5];

pub fn measure(count: usize, _: usize) -> Samples {
    if peers() != 2 {
        return Err("frames are for two: kyozon run --vms 2");
    }
    let Ok(mut port) = Port::open("") else { return Err("there is no network: kyozon run --net") };
    if port.most() < HEADER + BYTES {
        return Err("the network's frames are too short: mtu=65520");
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

/// Asks until the other guest is there.
fn meet(port: &mut Port, numbers: &mut Numbers) -> Result<(), &'static str> {
    let end = clock::now() + PATIENCE;
    while clock::now() < end {
        fill(numbers, 0);
        send(port, numbers)?;
        if receive(port, numbers, clock::now() + 10_000_000) {
            return Ok(());
        }
    }
    Err("the other guest did not come")
}

fn ask(port: &mut Port, numbers: &mut Numbers, round: u32) -> Result<u64, &'static str> {
    let began = clock::now();
    fill(numbers, round);
    send(port, numbers)?;
    loop {
        if !receive(port, numbers, clock::now() + PATIENCE) {
            return Err("no answer came");
        }
        let right = check(numbers, round);
        let took = clock::now() - began;
        // An answer to a question of before they met may come late.
        if numbers[0] > round {
            return right.then_some(took).ok_or("a number came back wrong");
        }
    }
}

/// Answers up to the last question.
fn answer(port: &mut Port, numbers: &mut Numbers, last: u32) -> Result<(), &'static str> {
    let mut round = None;
    while round != Some(last) {
        if !receive(port, numbers, clock::now() + PATIENCE) {
            return Err("no question came");
        }
        round = Some(numbers[0]);
        raise(numbers);
        send(port, numbers)?;
    }
    Ok(())
}

fn send(port: &mut Port, numbers: &Numbers) -> Result<(), &'static str> {
    let mac = port.mac();
    let end = clock::now() + PATIENCE;
    while !port.can_send() {
        if clock::now() > end {
            return Err("the network takes no frame");
        }
        port.wait(Some(end));
    }
    let sent = port.send(HEADER + BYTES, |frame| {
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&mac);
        frame[12..14].copy_from_slice(&KIND);
        frame[HEADER..].copy_from_slice(bytemuck::cast_slice(&numbers[..]));
    });
    sent.ok_or("the network takes no frame")
}

/// The next frame of the experiment; whether one came in time.
fn receive(port: &mut Port, numbers: &mut Numbers, end: u64) -> bool {
    loop {
        let came = port.receive(|frame| {
            let ours = frame.len() == HEADER + BYTES && frame[12..14] == KIND;
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
