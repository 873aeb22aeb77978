//! The bytes of a regular file. Holes stay holes.

use super::Job;
use crate::fs::failure::failed;
use crate::fs::progress::Progress;
use crate::fs::walk::Open;
use crate::interrupt;
use anyhow::{bail, ensure, Context, Result};
use liblinux::Errno;

/// Bytes that one read takes.
const CHUNK: usize = 1 << 20;

/// How a file is opened for reading: without waiting for a pipe's writer.
const READ: i32 = libc::O_RDONLY | libc::O_NONBLOCK;

/// Where a copy goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Goes {
    /// Into a new file.
    New,
    /// Into the file or device that is there, or to which a link leads that is there.
    Through,
}

/// Copies a file's bytes.
pub fn copy(job: &Job<'_>, goes: Goes, progress: &mut Progress) -> Result<()> {
    let regular = job.stat.st_mode & libc::S_IFMT == libc::S_IFREG;
    let no_link = if job.follow { 0 } else { libc::O_NOFOLLOW };
    // A pipe that the user names is read to its end; another file never makes the command wait.
    let how = if regular { READ | no_link } else { libc::O_RDONLY | no_link };
    let input = Open::new(job.from, job.name, how, "open")?;
    let output = match goes {
        Goes::New => Open::create(job.to, job.new)?,
        Goes::Through => Open::new(job.to, job.new, libc::O_WRONLY | libc::O_TRUNC, "open")?,
    };
    // Files of procfs have content, but no size.
    if regular && goes == Goes::New && job.stat.st_size > 0 {
        bytes(&input, &output, job.stat.st_size as u64, progress)?;
    } else {
        all(&input, &output, progress)?;
    }
    // Some file systems report a full disk when the file is closed.
    output.close("write")
}

/// Reads to the end, and writes one piece behind the other.
fn all(input: &Open<'_>, output: &Open<'_>, progress: &mut Progress) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        interrupt::check().with_context(|| format!("{} is incomplete", output.path.display()))?;
        let bytes = match input.calls.read(input.fd, &mut buffer) {
            Ok(0) => return Ok(()),
            Err(Errno(libc::EINTR)) => continue,
            bytes => bytes.map_err(failed("read", &input.path))?,
        };
        let wrote = output.calls.write_all(output.fd, &buffer[..bytes]);
        wrote.map_err(failed("write", &output.path))?;
        progress.bytes(bytes);
    }
}

fn bytes(input: &Open<'_>, output: &Open<'_>, size: u64, progress: &mut Progress) -> Result<()> {
    let (from, to) = (input.calls, output.calls);
    let (source, target) = (input.path.as_path(), output.path.as_path());
    let mut buffer = vec![0; CHUNK.min(size as usize)];
    let mut at = 0;
    while at < size {
        // A file system that knows no holes has one piece of data.
        let start = match from.seek(input.fd, at as i64, libc::SEEK_DATA) {
            Ok(start) if (at..=size).contains(&start) => start,
            Ok(_) => bail!("{} became shorter while it was copied", source.display()),
            Err(Errno(libc::ENXIO)) => break,
            Err(_) => at,
        };
        let end =
            from.seek(input.fd, start as i64, libc::SEEK_HOLE).unwrap_or(size).clamp(start, size);
        ensure!(end > at || start == size, "{}: a hole without an end", source.display());
        at = start;
        while at < end {
            interrupt::check().with_context(|| format!("{} is incomplete", target.display()))?;
            let want = (end - at).min(CHUNK as u64) as usize;
            let bytes =
                from.pread(input.fd, &mut buffer[..want], at).map_err(failed("read", source))?;
            if bytes == 0 {
                break;
            }
            output.write_at(&buffer[..bytes], at)?;
            at += bytes as u64;
            progress.bytes(bytes);
        }
        if at < end {
            bail!("{} became shorter while it was copied", source.display());
        }
    }
    to.truncate(output.fd, size).map_err(failed("write", target))
}
