//! Many threads that connect, send random sizes and close, over the loopback interface of one kernel.

use crate::common;
use crate::flow;
use liblinux::calls::{Calls, Fd};
use liblinux::socket::Sockets;
use liblinux::{Instance, Thread};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Pairs of a server's and a client's thread.
const PAIRS: u16 = 32;
const TIME: Duration = Duration::from_secs(4);

/// Sizes that repeat with their seed (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % limit
    }

    /// Mostly small, sometimes up to 200 KB.
    fn size(&mut self) -> usize {
        let limit = [64, 2000, 20_000, 200_000][self.below(4) as usize];
        1 + self.below(limit) as usize
    }
}

/// Numbers of /proc/net/sockstat by protocol and name: `TCP inuse`.
fn sockets(thread: &Thread) -> BTreeMap<String, u64> {
    let file = thread.open(Path::new("/proc/net/sockstat"), libc::O_RDONLY, 0).expect("open");
    let mut text = vec![0; 4096];
    let bytes = thread.read(file, &mut text).expect("read");
    thread.close(file).expect("close");
    let text = String::from_utf8_lossy(&text[..bytes]).into_owned();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some((protocol, rest)) = line.split_once(": ") else { continue };
        let words: Vec<_> = rest.split_whitespace().collect();
        for pair in words.chunks_exact(2) {
            found.insert(format!("{protocol} {}", pair[0]), pair[1].parse().expect("a number"));
        }
    }
    found
}

/// The numbers of sockets, if there are any. Those of finished connections that only wait do not count.
fn left(thread: &Thread) -> Option<BTreeMap<String, u64>> {
    const NAMES: [&str; 5] = ["sockets used", "TCP inuse", "TCP orphan", "TCP alloc", "UDP inuse"];
    let sockets = sockets(thread);
    NAMES.iter().any(|name| sockets.get(*name) != Some(&0)).then_some(sockets)
}

/// Answers with the same bytes, until a connection sends nothing.
fn serve(thread: &Thread, listener: Fd) {
    let mut buffer = vec![0; 50_000];
    loop {
        let socket = thread.accept(listener).expect("accept");
        let mut total = 0;
        loop {
            match thread.receive(socket, &mut buffer, 0).expect("receive") {
                0 => break,
                bytes => {
                    total += bytes;
                    thread.send_all(socket, &buffer[..bytes]).expect("send");
                }
            }
        }
        thread.close(socket).expect("close");
        if total == 0 {
            return thread.close(listener).expect("close");
        }
    }
}

/// Returns the number of bytes that came back.
fn ask(thread: &Thread, to: SocketAddr, seed: u64) -> u64 {
    let mut random = Random(seed);
    let (mut sent, mut back) = (vec![0; 200_001], vec![0; 200_001]);
    let (start, mut total) = (Instant::now(), 0);
    while start.elapsed() < TIME {
        let socket = thread.tcp_stream(to).expect("connect");
        for _ in 0..=random.below(4) {
            let size = random.size();
            flow::fill(&mut sent[..size], seed, total);
            // The answer to more than the buffers hold must be fetched meanwhile.
            for piece in sent[..size].chunks(30_000) {
                thread.send_all(socket, piece).expect("send");
                let at = piece.as_ptr() as usize - sent.as_ptr() as usize;
                let got = thread.receive_all(socket, &mut back[at..at + piece.len()]);
                assert_eq!(got, Ok(piece.len()));
            }
            assert!(sent[..size] == back[..size], "seed {seed}, {size} bytes after {total}");
            total += size as u64;
        }
        // Without the 60 seconds in which the port is not free again.
        if random.below(2) == 0 {
            let linger = [1i32, 0].map(i32::to_ne_bytes).concat();
            let (level, name) = (libc::SOL_SOCKET, libc::SO_LINGER);
            thread.set_option_bytes(socket, level, name, &linger).expect("an option");
            // A reset would fail the server's calls: the server closes first.
            thread.shutdown(socket, libc::SHUT_WR).expect("shutdown");
            assert_eq!(thread.receive(socket, &mut back, 0), Ok(0));
        }
        thread.close(socket).expect("close");
    }
    let socket = thread.tcp_stream(to).expect("connect");
    thread.close(socket).expect("close");
    total
}

fn address(pair: u16) -> SocketAddr {
    ([127, 0, 0, 1], 3000 + pair).into()
}

#[test]
fn many_threads_connect_and_close() {
    let (instance, thread) = common::boot(common::config());
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for pair in 0..PAIRS {
            let (instance, total): (&Instance, _) = (&instance, &total);
            let listener = thread.tcp_listener(address(pair)).expect("listen");
            scope.spawn(move || serve(&instance.attach().expect("attach"), listener));
            scope.spawn(move || {
                let thread = instance.attach().expect("attach");
                total.fetch_add(ask(&thread, address(pair), 1000 + u64::from(pair)), Relaxed);
            });
        }
    });
    assert!(total.load(Relaxed) > 1 << 20, "{} bytes in {TIME:?}", total.load(Relaxed));
    // The kernel frees a closed socket a little later.
    let start = Instant::now();
    while let Some(left) = left(&thread) {
        assert!(start.elapsed() < Duration::from_secs(10), "sockets are left: {left:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    instance.halt(thread).expect("halt");
}
