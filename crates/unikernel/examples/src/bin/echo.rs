//! A TCP server that sends all data back. Arguments: its address, such as 10.0.0.2/24, a port, and the number of
//! connections after which it ends; without that number it never does.
#![no_std]
#![no_main]

extern crate alloc;

use kyozon_unikernel::net::Port;
use kyozon_unikernel::tcp::smoltcp::socket::tcp::State;
use kyozon_unikernel::tcp::smoltcp::time::Duration;
use kyozon_unikernel::tcp::smoltcp::wire::IpCidr;
use kyozon_unikernel::tcp::Stack;
use kyozon_unikernel::{arguments, main, println};

main!(run);

/// Bytes of a socket's buffer, in each direction.
const BUFFER: usize = 64 << 10;
/// Maximum clients at the same time.
const CLIENTS: usize = 8;

fn run() -> u8 {
    let words: alloc::vec::Vec<_> = arguments::strings().collect();
    let address: Option<IpCidr> = words.first().and_then(|word| word.parse().ok());
    let tcp: Option<u16> = words.get(1).and_then(|word| word.parse().ok());
    let mut left = words.get(2).and_then(|word| word.parse::<u64>().ok()).unwrap_or(u64::MAX);
    let (Some(address), Some(tcp)) = (address, tcp) else {
        println!("arguments: an address, such as 10.0.0.2/24, and a port");
        return 2;
    };
    let Ok(port) = Port::open("") else {
        println!("no network: give one with kyozon run --net name=lan,...");
        return 1;
    };
    let Ok(mut stack) = Stack::new(port, address, None) else { return 1 };
    let mut sockets = [(); CLIENTS].map(|()| (stack.socket(BUFFER), false));
    for (handle, _) in sockets {
        // Keep-alives probe silent clients, and the timeout closes connections of clients that are gone.
        stack.tcp(handle).set_keep_alive(Some(Duration::from_secs(5)));
        stack.tcp(handle).set_timeout(Some(Duration::from_secs(15)));
    }
    println!("echo at {address}, port {tcp}");
    loop {
        stack.poll();
        let mut busy = false;
        for (handle, open) in &mut sockets {
            let socket = stack.tcp(*handle);
            if !socket.is_open() {
                left -= u64::from(core::mem::take(open));
                // Listening fails only at port 0.
                let _ = socket.listen(tcp);
            }
            *open |= socket.is_active();
            while socket.can_recv() && socket.can_send() {
                let room = socket.send_capacity() - socket.send_queue();
                let mut piece = [0; 4096];
                let max = piece.len().min(room);
                let bytes = socket.recv_slice(&mut piece[..max]).unwrap_or(0);
                let _ = socket.send_slice(&piece[..bytes]);
                busy = true;
            }
            // The client has closed its side, and got all its data back.
            if socket.state() == State::CloseWait && !socket.can_recv() {
                socket.close();
                busy = true;
            }
        }
        if left == 0 {
            return 0;
        }
        if !busy {
            stack.wait(None);
        }
    }
}
