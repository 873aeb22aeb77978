//! One sample: a connection or a socket, used for a given time.

use crate::cpu;
use crate::meter::Meter;
use crate::place::Side;
use liblinux::calls::{Calls, Fd, Result};
use liblinux::socket::Sockets;
use liblinux::Errno;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{channel, Sender};
use std::time::{Duration, Instant};

/// What is measured. The names are netperf's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// The variant sends a stream.
    TcpStream,
    /// The variant receives a stream.
    TcpMaerts,
    /// The variant sends datagrams. Those that the peer receives count.
    UdpStream,
    /// The variant sends a request and waits for an answer of the same size. Each end stays on a CPU of its own:
    /// without that, the scheduler of the host decides whether a wake-up crosses CPUs, which costs more than all else.
    TcpRr,
    /// The same with both ends on one CPU.
    TcpRrOneCpu,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TcpStream => "TCP_STREAM",
            Self::TcpMaerts => "TCP_MAERTS",
            Self::UdpStream => "UDP_STREAM",
            Self::TcpRr => "TCP_RR",
            Self::TcpRrOneCpu => "TCP_RR_ONE_CPU",
        })
    }
}

/// Bytes that a stream's receiver asks for.
const RECEIVE: usize = 128 << 10;
/// Messages between two looks at the clock.
const BATCH: usize = 16;
/// Time after which a receiver of datagrams asks whether more will come.
const SILENCE: Duration = Duration::from_millis(20);

/// Takes a sample. Returns MB/s, nanoseconds of CPU time per KiB, and those of them in programs; of requests,
/// microseconds, and nanoseconds per request. Calls of the TAP device and nanoseconds in them follow.
pub fn take(
    test: Test,
    size: usize,
    time: Duration,
    side: &dyn Side,
    peer: &dyn Side,
    to: SocketAddr,
    meter: &Meter,
) -> std::result::Result<[f64; 5], String> {
    let (ready, wait) = channel();
    let over = AtomicBool::new(false);
    let (before, tap) = (cpu::nanoseconds(), meter.read());
    let (units, seconds) = std::thread::scope(|scope| {
        let over = &over;
        let served = scope.spawn(move || {
            place(test, 1);
            serve(test, size, time, &*peer.attach(), to.port(), &ready, over)
        });
        wait.recv().map_err(|_| "the peer ended")?;
        let used = scope.spawn(move || {
            place(test, 0);
            client(test, size, time, &*side.attach(), to)
        });
        let used = used.join();
        over.store(true, SeqCst);
        let served = served.join().map_err(|_| "the peer panicked")?;
        let used = used.map_err(|_| "the client panicked")?;
        let (served, used) =
            served.and_then(|served| used.map(|used| (served, used))).map_err(|Errno(e)| {
                format!("{test} {size}: {}", std::io::Error::from_raw_os_error(e))
            })?;
        // The receiver's figures count.
        let counts = if matches!(test, Test::TcpStream | Test::UdpStream) { served } else { used };
        Ok::<_, String>(counts)
    })?;
    let after = cpu::nanoseconds();
    let tapped = meter.read();
    let [calls, inside] = [tapped[0] - tap[0], tapped[1] - tap[1]];
    let [programs, host] = [after[0] - before[0], after[1] - before[1]];
    if units == 0 {
        return Err(format!("{test} {size}: nothing arrived"));
    }
    let units = units as f64;
    let (figure, unit) = match test {
        Test::TcpRr | Test::TcpRrOneCpu => (seconds * 1e6 / units, 1.0),
        _ => (units / seconds / 1e6, 1024.0),
    };
    let each = [programs + host, programs, calls, inside].map(|value| value / units * unit);
    let [cpu, programs, calls, inside] = each;
    Ok([figure, cpu, programs, calls, inside])
}

/// Keeps the thread of an end, 0 or 1, on its CPU, if the test says which.
fn place(test: Test, end: usize) {
    let cpus = cpu::allowed();
    match test {
        Test::TcpRr => cpu::pin(cpus[end % cpus.len()]),
        Test::TcpRrOneCpu => cpu::pin(cpus[0]),
        _ => {}
    }
}

/// Number of bytes or requests, and seconds that they took.
type Counted = Result<(u64, f64)>;

fn serve(
    test: Test,
    size: usize,
    time: Duration,
    kernel: &dyn Calls,
    port: u16,
    ready: &Sender<()>,
    over: &AtomicBool,
) -> Counted {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    if test == Test::UdpStream {
        let socket = kernel.udp(any)?;
        kernel.set_receive_limit(socket, SILENCE)?;
        // The client waits for this; a send without a receiver only ends the sample.
        let _ = ready.send(());
        let counted = receive_datagrams(kernel, socket, over);
        kernel.close(socket)?;
        return counted;
    }
    let listener = kernel.tcp_listener(any)?;
    choose_control(kernel, listener)?;
    let _ = ready.send(());
    let socket = kernel.accept(listener)?;
    let counted = match test {
        Test::TcpMaerts => send(kernel, socket, size, time).map(|()| (0, 0.0)),
        Test::TcpRr | Test::TcpRrOneCpu => answer(kernel, socket, size).map(|()| (0, 0.0)),
        _ => receive(kernel, socket),
    };
    kernel.close(socket)?;
    kernel.close(listener)?;
    counted
}

fn client(test: Test, size: usize, time: Duration, kernel: &dyn Calls, to: SocketAddr) -> Counted {
    if test == Test::UdpStream {
        let socket = kernel.socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        kernel.connect(socket, to)?;
        send_datagrams(kernel, socket, size, time)?;
        return kernel.close(socket).map(|()| (0, 0.0));
    }
    let socket = kernel.socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    choose_control(kernel, socket)?;
    kernel.connect(socket, to)?;
    let counted = match test {
        Test::TcpMaerts => receive(kernel, socket),
        Test::TcpRr | Test::TcpRrOneCpu => ask(kernel, socket, size, time),
        _ => send(kernel, socket, size, time).map(|()| (0, 0.0)),
    };
    kernel.close(socket)?;
    counted
}

/// Selects the same congestion control for both stacks. Accepted connections inherit it.
fn choose_control(kernel: &dyn Calls, socket: Fd) -> Result<()> {
    kernel.set_option_bytes(socket, libc::SOL_TCP, libc::TCP_CONGESTION, b"cubic")
}

fn send(kernel: &dyn Calls, socket: Fd, size: usize, time: Duration) -> Result<()> {
    let (start, message) = (Instant::now(), vec![1; size]);
    while start.elapsed() < time {
        for _ in 0..BATCH {
            kernel.send_all(socket, &message)?;
        }
    }
    kernel.shutdown(socket, libc::SHUT_WR)?;
    // The other end closes when it has everything.
    kernel.receive(socket, &mut [0], 0).map(drop)
}

fn receive(kernel: &dyn Calls, socket: Fd) -> Counted {
    let (mut buffer, mut bytes) = (vec![0; RECEIVE], 0);
    let start = Instant::now();
    loop {
        match kernel.receive(socket, &mut buffer, 0)? {
            0 => return Ok((bytes, start.elapsed().as_secs_f64())),
            count => bytes += count as u64,
        }
    }
}

fn send_datagrams(kernel: &dyn Calls, socket: Fd, size: usize, time: Duration) -> Result<()> {
    let (start, message) = (Instant::now(), vec![1; size]);
    while start.elapsed() < time {
        for _ in 0..BATCH {
            match kernel.send(socket, &message, 0) {
                // A full queue of the device loses a datagram, as the network does.
                Ok(_) | Err(Errno(libc::ENOBUFS)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn receive_datagrams(kernel: &dyn Calls, socket: Fd, over: &AtomicBool) -> Counted {
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    let (mut start, mut seconds) = (None, 0.0);
    loop {
        match kernel.receive(socket, &mut buffer, 0) {
            Ok(count) => {
                let start = *start.get_or_insert_with(Instant::now);
                bytes += count as u64;
                seconds = start.elapsed().as_secs_f64();
            }
            Err(Errno(libc::EAGAIN)) if over.load(SeqCst) => return Ok((bytes, seconds)),
            Err(Errno(libc::EAGAIN)) => {}
            Err(error) => return Err(error),
        }
    }
}

fn ask(kernel: &dyn Calls, socket: Fd, size: usize, time: Duration) -> Counted {
    kernel.set_option(socket, libc::SOL_TCP, libc::TCP_NODELAY, 1)?;
    let (mut message, mut requests) = (vec![1; size], 0);
    let start = Instant::now();
    while start.elapsed() < time {
        for _ in 0..BATCH {
            kernel.send_all(socket, &message)?;
            kernel.receive_all(socket, &mut message)?;
            requests += 1;
        }
    }
    Ok((requests, start.elapsed().as_secs_f64()))
}

fn answer(kernel: &dyn Calls, socket: Fd, size: usize) -> Result<()> {
    kernel.set_option(socket, libc::SOL_TCP, libc::TCP_NODELAY, 1)?;
    let mut message = vec![0; size];
    while kernel.receive_all(socket, &mut message)? == size {
        kernel.send_all(socket, &message)?;
    }
    Ok(())
}
