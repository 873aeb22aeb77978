//! A client of a TCP server in a unikernel, at the other end of its network: sends files, keeps what comes back.

use crate::wire::{Server, Wire};
use anyhow::{anyhow, ensure, Context, Result};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp::Socket;
use smoltcp::time::Instant;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// What `kyozon-lab talk` takes.
#[derive(Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    server: Server,
    /// Files to be sent, a connection each, one after another; those with a comma between them at one time. What comes
    /// back until the server closes is written to FILE.out
    #[arg(required = true, value_name = "FILE[,FILE]")]
    files: Vec<String>,
}

/// What was sent at one time takes no longer.
const LIMIT: Duration = Duration::from_secs(60);
/// How long it sleeps where there is nothing.
const NAP: Duration = Duration::from_millis(1);
/// How long it stays after the last byte.
const LINGER: Duration = Duration::from_millis(100);

/// A connection, and what is left to be sent.
struct Talk {
    path: String,
    handle: SocketHandle,
    said: Vec<u8>,
    sent: usize,
    got: Vec<u8>,
    done: bool,
}

impl Talk {
    /// Sends and takes what can be. Whether something was done.
    fn go_on(&mut self, socket: &mut Socket<'_>) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        let mut busy = false;
        if socket.can_send() && self.sent < self.said.len() {
            self.sent += socket.send_slice(&self.said[self.sent..]).unwrap_or(0);
            busy = true;
        }
        if socket.may_send() && self.sent == self.said.len() {
            socket.close();
        }
        while socket.can_recv() {
            let take = |bytes: &mut [u8]| {
                self.got.extend_from_slice(bytes);
                (bytes.len(), ())
            };
            socket.recv(take).map_err(|error| anyhow!("{error}"))?;
            busy = true;
        }
        // A server may close before it was told everything.
        let ended = !socket.is_active() || !socket.may_recv() && !socket.can_recv();
        if ended && (self.sent > 0 || !socket.is_active()) {
            socket.close();
            fs::write(format!("{}.out", self.path), &self.got)?;
            self.done = true;
        }
        Ok(busy)
    }
}

/// Sends all files.
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
        for (path, said) in files {
            let handle = options.server.connect(&mut interface, &mut sockets, port)?;
            port += 1;
            talks.push(Talk { path, handle, said, sent: 0, got: Vec::new(), done: false });
        }
        round(&mut wire, &mut interface, &mut sockets, &mut talks)?;
        for Talk { path, said, got, .. } in &talks {
            println!("{path}: {} bytes, {} came back", said.len(), got.len());
        }
    }
    Ok(())
}

/// Everything that is said at one time.
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
            busy |= talk.go_on(socket).with_context(|| talk.path.clone())?;
        }
        let left = talks.iter().find(|talk| !talk.done);
        if left.is_none() && !over {
            // The last acknowledgement is said late; the other end waits for it.
            (over, end) = (true, std::time::Instant::now() + LINGER);
        }
        if let Some(Talk { path, said, sent, got, .. }) = left {
            let told = format!(
                "{path}: {sent} of {} bytes were sent, {} came back",
                said.len(),
                got.len()
            );
            ensure!(alive, "the network is gone: {told}");
            ensure!(std::time::Instant::now() < end, "time is over: {told}");
        } else if !alive || std::time::Instant::now() > end {
            return Ok(());
        }
        if !busy && wire.is_empty() {
            std::thread::sleep(NAP);
        }
    }
}
