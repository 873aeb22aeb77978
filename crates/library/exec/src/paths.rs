//! Which paths are the library's: those below a mount point. The library has each file system at the same path, so that
//! names need no translation.
//!
//! Paths are compared as text, after `.`, `..` and repeated slashes are resolved. A symbolic link of the host that
//! points into a mount point is not seen, nor is one in an image that points out of it.
//!
//! An image that is mounted at `/` has all paths but those of the host's devices and processes ([`HOST`]).

use crate::host;
use std::ffi::CString;
use std::sync::{Mutex, OnceLock};

static MOUNTS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
/// The working directory, if it is in the library.
static CWD: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Sets the mount points: absolute paths without a slash at the end.
pub fn set_mounts(mounts: Vec<Vec<u8>>) {
    MOUNTS.get_or_init(|| mounts);
}

/// Whether any path is the library's, or would be if this process had it.
pub fn any() -> bool {
    MOUNTS.get().is_some_and(|mounts| !mounts.is_empty())
}

/// A short absolute path without anything to resolve, as most paths are. It needs no memory.
pub struct Short {
    buffer: [u8; 256],
    length: usize,
}

impl Short {
    /// The path at an address of the program, if it is one.
    pub fn read(address: u64) -> Option<Self> {
        let mut path = Self { buffer: [0; 256], length: 0 };
        // Not beyond the page: the next one may be missing.
        let most = path.buffer.len().min(4096 - (address % 4096) as usize);
        let bytes = host::read(address, &mut path.buffer[..most]).ok()?;
        let mut before = 0;
        for (i, &byte) in path.buffer[..bytes].iter().enumerate() {
            match byte {
                0 if i > 1 && before != b'/' => {
                    path.length = i;
                    break;
                }
                0 => return None,
                b'/' if before == b'/' => return None,
                b'.' if before == b'/' => return None,
                _ if i == 0 && byte != b'/' => return None,
                _ => before = byte,
            }
        }
        let special = |folder: &[u8]| path.buffer[..path.length].starts_with(folder);
        (path.length > 0 && !special(b"/dev/") && !special(b"/proc/")).then_some(path)
    }

    /// Its bytes, without the zero.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// The address of a copy that does not change any more.
    pub fn address(&self) -> u64 {
        self.buffer.as_ptr() as u64
    }
}

/// What is the host's even if an image is mounted at `/`.
const HOST: [&[u8]; 3] = [b"/dev", b"/proc", b"/sys"];

/// Whether an image that is mounted at `mount` has the absolute path.
fn owns(mount: &[u8], path: &[u8]) -> bool {
    let below = |mount: &[u8]| {
        path.strip_prefix(mount).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
    };
    if mount == b"/" {
        !HOST.into_iter().any(below)
    } else {
        below(mount)
    }
}

/// Whether the absolute path is in the library.
pub fn mounted(path: &[u8]) -> bool {
    MOUNTS.get().is_some_and(|mounts| mounts.iter().any(|mount| owns(mount, path)))
}

/// The absolute path without `.`, `..` and repeated slashes.
pub fn normalize(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => (),
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut path = Vec::new();
    for part in parts {
        path.push(b'/');
        path.extend_from_slice(part);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    path
}

/// The working directory, if it is in the library.
pub fn cwd() -> Option<Vec<u8>> {
    CWD.lock().expect("no panic while locked").clone()
}

/// The working directory has changed: to one of the library, or to one of the host.
pub fn set_cwd(path: Option<Vec<u8>>) {
    *CWD.lock().expect("no panic while locked") = path;
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub enum Place {
    /// To the host, as the program wrote it.
    Host,
    /// To the host by this path, because the program's is relative to a directory of the library.
    HostAt(CString),
    /// To the library by this absolute path.
    Library(CString),
}

/// The string at an address of the program.
pub fn read(address: u64) -> Result<Vec<u8>, i64> {
    let mut path = Vec::new();
    let mut buffer = [0u8; 256];
    while path.len() < libc::PATH_MAX as usize {
        // Not beyond the page: the next one may be missing.
        let at = address + path.len() as u64;
        let bytes = buffer.len().min(4096 - (at % 4096) as usize);
        let bytes = host::read(at, &mut buffer[..bytes])?;
        if let Some(end) = buffer[..bytes].iter().position(|&byte| byte == 0) {
            path.extend_from_slice(&buffer[..end]);
            return Ok(path);
        }
        path.extend_from_slice(&buffer[..bytes]);
    }
    Err(-i64::from(libc::ENAMETOOLONG))
}

/// The library's link to an open file, if the path is the host's link to a descriptor of the library.
pub fn descriptor_link(path: &[u8]) -> Option<CString> {
    if !path.starts_with(b"/dev/") && !path.starts_with(b"/proc/") {
        return None;
    }
    let text = std::str::from_utf8(path).ok()?;
    let number = match text {
        "/dev/stdin" => 0,
        "/dev/stdout" => 1,
        "/dev/stderr" => 2,
        _ => {
            let own = format!("/proc/{}/fd/", std::process::id());
            ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", &own]
                .iter()
                .find_map(|folder| text.strip_prefix(folder)?.parse().ok())?
        }
    };
    let inner = crate::descriptors::get(number)?;
    CString::new(format!("/proc/self/fd/{inner}")).ok()
}

/// Whether the path is the host's link to the file of this process, which is our command and not the program.
pub fn executable_link(path: &[u8]) -> bool {
    let Some(process) = path.strip_prefix(b"/proc/").and_then(|rest| rest.strip_suffix(b"/exe"))
    else {
        return false;
    };
    match process {
        b"self" | b"thread-self" => true,
        number => number == std::process::id().to_string().as_bytes(),
    }
}

/// Where a path leads that is absolute, or relative to the working directory.
pub fn place(path: &[u8]) -> Place {
    if path.is_empty() {
        return Place::Host;
    }
    let inside = cwd();
    let relative = path[0] != b'/';
    let whole = if !relative {
        path.to_vec()
    } else {
        let base = inside.clone().unwrap_or_else(host_cwd);
        [base.as_slice(), b"/", path].concat()
    };
    let mut clean = normalize(&whole);
    let in_library = mounted(&clean);
    // A slash at the end asks for a directory.
    if whole.ends_with(b"/") && clean.len() > 1 {
        clean.push(b'/');
    }
    let Ok(string) = CString::new(clean) else { return Place::Host };
    match (in_library, relative && inside.is_some()) {
        (true, _) => Place::Library(string),
        (false, true) => Place::HostAt(string),
        (false, false) => Place::Host,
    }
}

fn host_cwd() -> Vec<u8> {
    let mut buffer = vec![0u8; libc::PATH_MAX as usize];
    let bytes = host::call(libc::SYS_getcwd, &[buffer.as_mut_ptr() as u64, buffer.len() as u64]);
    buffer.truncate((bytes - 1).max(0) as usize);
    buffer
}

#[cfg(test)]
mod tests;
