//! A client of a TCP server in a unikernel, on that unikernel's network: sends files and writes the answers.

use crate::wire::{Server, Wire};
use anyhow::{anyhow, ensure, Context, Result};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::Socket;
use smoltcp::time::Instant;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Options of `kyozon-lab talk`.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    server: Server,
    /// Files to send, one connection each, one after another; those joined by a comma at the same time. The answer,
    /// until the server closes, goes to FILE.out
    #[arg(required = true, value_name = "FILE[,FILE]")]
    files: Vec<String>,
}

/// Time limit of the connections that are open at the same time.
const LIMIT: Duration = Duration::from_secs(60);
/// Sleep while there is nothing to send or receive.
const NAP: Duration = Duration::from_millis(1);
/// Time that the client stays after the last byte, so that its last acknowledgement leaves.
const LINGER: Duration = Duration::from_millis(100);

/// A connection that sends one file.
struct Talk {
    path: String,
    handle: SocketHandle,
    request: Vec<u8>,
    sent: usize,
    answer: Vec<u8>,
    done: bool,
}

impl Talk {
    /// Sends and receives as much as the socket allows now. Returns whether that was anything.
    fn advance(&mut self, socket: &mut Socket<'_>) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        let mut busy = false;
        if socket.can_send() && self.sent < self.request.len() {
            self.sent += socket.send_slice(&self.request[self.sent..]).unwrap_or(0);
            busy = true;
        }
        if socket.may_send() && self.sent == self.request.len() {
            socket.close();
        }
        while socket.can_recv() {
            let take = |bytes: &mut [u8]| {
                self.answer.extend_from_slice(bytes);
                (bytes.len(), ())
            };
            socket.recv(take).map_err(|error| anyhow!("{error}"))?;
            busy = true;
        }
        // A server may close before it has read the whole file.
        let ended = !socket.is_active() || !socket.may_recv() && !socket.can_recv();
        if ended && (self.sent > 0 || !socket.is_active()) {
            socket.close();
            fs::write(format!("{}.out", self.path), &self.answer)?;
            self.done = true;
        }
        Ok(busy)
    }
}

/// Sends all files, and writes each answer.
pub fn talk(options: &Options) -> Result<()> {
    let read = |path: &str| fs::read(Path::new(path)).with_context(|| path.to_owned());
    let rounds: Vec<Vec<(String, Vec<u8>)>> = options
        .files
        .iter()
        .map(|files| files.split(',').map(|path| Ok((path.to_owned(), read(path)?))).collect())
        .collect::<Result<_>>()?;
    let (mut wire, mut interface) = options.server.meet()?;
    let mut port = 50_000;
    for files in rounds {
        let mut sockets = SocketSet::new(Vec::new());
        let mut talks = Vec::new();
        for (path, request) in files {
            let handle = options.server.connect(&mut interface, &mut sockets, port)?;
            port += 1;
            talks.push(Talk { path, handle, request, sent: 0, answer: Vec::new(), done: false });
        }
        round(&mut wire, &mut interface, &mut sockets, &mut talks)?;
        for Talk { path, request, answer, .. } in &talks {
            println!("{path}: {} bytes, {} came back", request.len(), answer.len());
        }
    }
    Ok(())
}

/// Runs the connections of one round to their ends.
fn round(
    wire: &mut Wire,
    interface: &mut Interface,
    sockets: &mut SocketSet<'_>,
    talks: &mut [Talk],
) -> Result<()> {
    let mut end = std::time::Instant::now() + LIMIT;
    let mut over = false;
    loop {
        let alive = wire.fill();
        interface.poll(Instant::now(), wire, sockets);
        let mut busy = false;
        for talk in talks.iter_mut() {
            let socket = sockets.get_mut::<Socket>(talk.handle);
            busy |= talk.advance(socket).with_context(|| talk.path.clone())?;
        }
        let left = talks.iter().find(|talk| !talk.done);
        if left.is_none() && !over {
            // TCP delays the last acknowledgement, and the server waits for it.
            (over, end) = (true, std::time::Instant::now() + LINGER);
        }
        if let Some(Talk { path, request, sent, answer, .. }) = left {
            let progress = format!(
                "{path}: {sent} of {} bytes were sent, {} came back",
                request.len(),
                answer.len()
            );
            ensure!(alive, "the unikernel closed the network: {progress}");
            ensure!(
                std::time::Instant::now() < end,
                "no end within {} s: {progress}",
                LIMIT.as_secs()
            );
        } else if !alive || std::time::Instant::now() > end {
            return Ok(());
        }
        if !busy && wire.is_empty() {
            std::thread::sleep(NAP);
        }
    }
}
