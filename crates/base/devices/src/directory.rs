//! A folder of the host as the guest's file system (section 5.11): FUSE messages in a queue.
//!
//! The crate `fuse-backend-rs` parses messages and makes the system calls. It opens each name relative to its folder
//! and follows no symbolic links, so that no message leads out of the folder. A message is copied before it is parsed,
//! and a reply is copied when it is complete: neither side sees the other's memory meanwhile.

mod device;

pub use device::DirectoryDevice;

use crate::chain::Chain;
use crate::ring::Bad;
use crate::Memory;
use fuse_backend_rs::api::server::{Server, MAX_BUFFER_SIZE};
use fuse_backend_rs::passthrough::{CachePolicy, Config, PassthroughFs};
use fuse_backend_rs::transport::{FuseBuf, FuseDevWriter, Reader, Writer};
use rustix::fs::Mode;
use rustix::process::umask;
use rustix::thread::{unshare_unsafe, UnshareFlags};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

/// Bytes of a request's header, `struct fuse_in_header`.
const REQUEST: usize = 40;
/// Bytes of a reply's header, `struct fuse_out_header`: length, error, and the request's number.
const REPLY: usize = 16;
/// The kind of a file system's first request.
const INIT: [u8; 4] = 26_u32.to_le_bytes();
/// Maximum bytes of a message: its data, and a page for headers and names.
const MAX_MESSAGE: usize = MAX_BUFFER_SIZE as usize + 4096;

/// A folder, and the messages that are being served.
struct Directory {
    server: Server<PassthroughFs>,
    request: Vec<u8>,
    reply: Vec<u8>,
    /// The library writes its replies to a descriptor. They are taken from its buffer instead.
    nowhere: File,
    /// Whether the calling thread shares its file mode mask with no other.
    own_mask: bool,
}

impl Directory {
    /// A folder that also others may change. What the guest learnt is valid for as long as `valid`.
    ///
    /// # Errors
    ///
    /// There is no such folder, or it cannot be opened.
    fn new(path: &Path, valid: Duration) -> Result<Self> {
        let path = path.canonicalize()?;
        if !path.is_dir() {
            return Err(Error::from(ErrorKind::NotADirectory));
        }
        let Some(root) = path.to_str() else {
            let text = "the path is not UTF-8, as the file system's library needs it";
            return Err(Error::new(ErrorKind::InvalidInput, text));
        };
        let config = Config {
            root_dir: root.into(),
            xattr: true,
            cache_policy: CachePolicy::Auto,
            attr_timeout: valid,
            entry_timeout: valid,
            ..Config::default()
        };
        let server = Server::new(PassthroughFs::new(config)?);
        let nowhere = File::options().write(true).open("/dev/null")?;
        let (request, reply) = (vec![0; MAX_MESSAGE], vec![0; MAX_MESSAGE]);
        Ok(Self { server, request, reply, nowhere, own_mask: false })
    }

    /// Gives the calling thread, which then serves, a file mode mask of its own, because the library clears it at a
    /// file system's start: the guest applies a mask of its own. Containers may forbid that. Then the mask is put back,
    /// and applies to what the guest makes, too.
    fn own_mask(&mut self) {
        // SAFETY: this shares no descriptors, which the flag leaves alone.
        self.own_mask = unsafe { unshare_unsafe(UnshareFlags::FS) }.is_ok();
    }

    /// Serves one message. Returns the bytes of its reply.
    fn serve<M: Memory>(&mut self, memory: &M, chain: &mut Chain) -> std::result::Result<u32, Bad> {
        let bytes = chain.to_read();
        if bytes < REQUEST as u64 {
            return Err(Bad::Short);
        }
        let room = chain.to_write().min(MAX_MESSAGE as u64) as usize;
        let reply = if bytes > MAX_MESSAGE as u64 {
            let mut header = [0; REQUEST];
            chain.read(memory, &mut header)?;
            self.refuse(&header, libc::E2BIG)
        } else {
            let request = &mut self.request[..bytes as usize];
            chain.read(memory, request)?;
            self.answer(bytes as usize, room)
        };
        if reply > room {
            // Messages without a reply, such as FORGET, have no room for one.
            return Ok(0);
        }
        chain.write(memory, &self.reply[..reply])?;
        Ok(reply as u32)
    }

    /// Serves the message in `request`. Returns the bytes of the reply, which are at the beginning of `reply`.
    fn answer(&mut self, bytes: usize, room: usize) -> usize {
        let header: [u8; REQUEST] = self.request[..REQUEST].try_into().expect("checked size");
        // A message without a reply leaves this zero.
        self.reply[..REPLY].fill(0);
        let mask = (!self.own_mask && header[4..8] == INIT).then(|| umask(Mode::empty()));
        let served =
            serve(&self.server, &self.nowhere, &mut self.request[..bytes], &mut self.reply[..room]);
        mask.map(umask);
        let length = u32::from_le_bytes(self.reply[..4].try_into().expect("four bytes")) as usize;
        match served {
            Ok(()) if length == 0 || (REPLY..=room).contains(&length) => length,
            // The guest would wait for ever.
            _ => self.refuse(&header, libc::EIO),
        }
    }

    /// Makes a reply with an error number. Returns its bytes.
    fn refuse(&mut self, header: &[u8; REQUEST], error: i32) -> usize {
        let number = &header[8..16];
        self.reply[..4].copy_from_slice(&(REPLY as u32).to_le_bytes());
        self.reply[4..8].copy_from_slice(&(-error).to_le_bytes());
        self.reply[8..16].copy_from_slice(number);
        REPLY
    }
}

/// Serves `request`. The reply's parts follow each other in `reply`.
fn serve(
    server: &Server<PassthroughFs>,
    nowhere: &File,
    request: &mut [u8],
    reply: &mut [u8],
) -> fuse_backend_rs::Result<()> {
    let reader = Reader::<()>::from_fuse_buffer(FuseBuf::new(request))
        .map_err(|_| fuse_backend_rs::Error::MissingParameter)?;
    let room = reply.len();
    let mut writer = FuseDevWriter::<()>::new(nowhere.as_raw_fd(), reply)
        .map_err(|_| fuse_backend_rs::Error::MissingParameter)?;
    // From here on the writer keeps what it gets in its buffer.
    writer.split_at(room).map_err(fuse_backend_rs::Error::FailedToSplitWriter)?;
    server.handle_message(reader, Writer::FuseDev(writer), None, None).map(drop)
}

#[cfg(test)]
mod tests;
