//! The exchange through the host's kernel, between two threads. Between two processes it costs no less.

use crate::numbers::{check, fill, increment, Numbers, NUMBERS};
use crate::{pin, Error, Samples};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

/// One end of a connection: the streams that it reads and writes.
type End = (Box<dyn Read + Send>, Box<dyn Write + Send>);

pub fn tcp(count: usize, _: usize) -> Samples {
    exchange(count, || {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let near = TcpStream::connect(listener.local_addr()?)?;
        let far = listener.accept()?.0;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        Ok([(near.try_clone()?, near), (far.try_clone()?, far)].map(boxed))
    })
}

pub fn unix(count: usize, _: usize) -> Samples {
    exchange(count, || {
        let (near, far) = UnixStream::pair()?;
        Ok([(near.try_clone()?, near), (far.try_clone()?, far)].map(boxed))
    })
}

pub fn pipes(count: usize, _: usize) -> Samples {
    exchange(count, || {
        let pipe = || rustix::pipe::pipe().map(|(from, to)| (File::from(from), File::from(to)));
        let ((from_far, to_near), (from_near, to_far)) = (pipe()?, pipe()?);
        Ok([(from_far, to_far), (from_near, to_near)].map(boxed))
    })
}

fn boxed((from, to): (impl Read + Send + 'static, impl Write + Send + 'static)) -> End {
    (Box::new(from), Box::new(to))
}

fn exchange(count: usize, open: impl FnOnce() -> io::Result<[End; 2]>) -> Samples {
    let [mut near, mut far] = open().map_err(|_| Error::NoConnection)?;
    thread::scope(|scope| {
        scope.spawn(move || {
            pin::to_side(1);
            let mut numbers = Box::new([0; NUMBERS]);
            // An error ends this side; the other side then reports one.
            while far.0.read_exact(bytemuck::cast_slice_mut(&mut numbers[..])).is_ok() {
                increment(&mut numbers);
                if far.1.write_all(bytemuck::cast_slice(&numbers[..])).is_err() {
                    break;
                }
            }
        });
        pin::to_side(0);
        let mut numbers = Box::new([0; NUMBERS]);
        let samples = (0..count as u32).map(|round| ask(&mut near, &mut numbers, round)).collect();
        // Dropping both streams ends the other side.
        drop(near);
        samples
    })
}

fn ask(end: &mut End, numbers: &mut Numbers, round: u32) -> Result<u64, Error> {
    let began = Instant::now();
    fill(numbers, round);
    end.1.write_all(bytemuck::cast_slice(&numbers[..])).map_err(|_| Error::Send)?;
    end.0.read_exact(bytemuck::cast_slice_mut(&mut numbers[..])).map_err(|_| Error::NoAnswer)?;
    let right = check(numbers, round);
    let took = began.elapsed().as_nanos() as u64;
    right.then_some(took).ok_or(Error::WrongNumber)
}
