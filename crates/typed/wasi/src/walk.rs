//! Path resolution: component by component, and never out of the directory that it starts in.
//!
//! Every directory that was entered stays open until the path is resolved, so `..` goes back to where the walk came
//! from, not to what has become of the directory's parent. A component that is a symbolic link is replaced by its
//! target. The host follows no links, so a component that becomes one after it was looked at ends the walk or the call
//! with an error.

use crate::host::Host;
use crate::memory::{check, Memory};
use crate::types::Errno;

/// Most bytes of a path, and of a path with the links in it replaced.
pub const PATH: usize = 4096;
/// Most links that are followed in one path.
const LINKS: u32 = 40;

/// Room for a path that is resolved.
#[derive(Clone)]
pub(crate) struct Path {
    /// What is left of the path is at the end, so that a link's target can be put before it.
    text: [u8; PATH],
    start: usize,
    link: [u8; PATH],
}

impl Path {
    pub const fn new() -> Path {
        Path { text: [0; PATH], start: PATH, link: [0; PATH] }
    }

    /// Room for the target of a link that is not followed.
    pub fn link(&mut self) -> &mut [u8; PATH] {
        &mut self.link
    }

    /// Copies a path, or the target of a link, from the program's memory.
    pub fn load<M: Memory + ?Sized>(
        &mut self,
        memory: &M,
        at: u32,
        bytes: u32,
    ) -> Result<&[u8], Errno> {
        check(memory, at, bytes, 1)?;
        self.start = match PATH.checked_sub(bytes as usize) {
            None | Some(0) => return Err(Errno::Nametoolong),
            Some(start) => start,
        };
        let text = &mut self.text[self.start..];
        memory.read(at, text)?;
        if core::str::from_utf8(text).is_err() {
            return Err(Errno::Ilseq);
        }
        if text.contains(&0) {
            return Err(Errno::Inval);
        }
        Ok(text)
    }
}

/// When a symbolic link at the end of a path is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follow {
    Always,
    /// A slash behind it demands a directory, so the link is followed.
    BeforeSlash,
    Never,
}

/// The last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last<'s> {
    Name(&'s [u8]),
    /// The directory itself, by `.`.
    Dot,
    /// The directory itself, by `..`.
    DotDot,
}

impl<'s> Last<'s> {
    /// The name for functions of the host that take `.`.
    pub fn or_dot(self) -> &'s [u8] {
        match self {
            Last::Name(name) => name,
            Last::Dot | Last::DotDot => b".",
        }
    }

    /// The name, or the errors for `.` and `..`.
    pub fn or(self, dot: Errno, dot_dot: Errno) -> Result<&'s [u8], Errno> {
        match self {
            Last::Name(name) => Ok(name),
            Last::Dot => Err(dot),
            Last::DotDot => Err(dot_dot),
        }
    }
}

/// Where a path leads.
pub(crate) struct Place<'s, T> {
    pub directory: &'s T,
    pub last: Last<'s>,
    /// Slashes follow: it must be a directory.
    pub slash: bool,
}

/// The directories that were entered.
pub(crate) struct Walk<'a, T> {
    entered: &'a mut [Option<T>],
}

impl<'a, T> Walk<'a, T> {
    pub fn new(entered: &'a mut [Option<T>]) -> Walk<'a, T> {
        Walk { entered }
    }

    /// Closes the directories.
    pub fn leave(&mut self) {
        for entered in self.entered.iter_mut().take_while(|entered| entered.is_some()) {
            *entered = None;
        }
    }

    /// Resolves the path that was loaded, from `base` on.
    pub fn resolve<'s, H: Host<Handle = T>>(
        &'s mut self,
        host: &mut H,
        base: &'s T,
        path: &'s mut Path,
        follow: Follow,
    ) -> Result<Place<'s, T>, Errno> {
        self.leave();
        let entered = &mut *self.entered;
        let Path { text, start, link } = path;
        match text.get(*start) {
            None => return Err(Errno::Noent),
            Some(b'/') => return Err(Errno::Notcapable),
            Some(_) => {}
        }
        let (mut depth, mut links) = (0, 0);
        loop {
            while text.get(*start) == Some(&b'/') {
                *start += 1;
            }
            let length = text[*start..].iter().position(|&byte| byte == b'/');
            let end = length.map_or(PATH, |length| *start + length);
            let last = text[end..].iter().all(|&byte| byte == b'/');
            let slash = last && end < PATH;
            let is_link = match &text[*start..end] {
                b"." if last => return Ok(place(base, entered, depth, Last::Dot, slash)),
                b"." => false,
                b".." => {
                    depth = usize::checked_sub(depth, 1).ok_or(Errno::Notcapable)?;
                    entered[depth] = None;
                    if last {
                        return Ok(place(base, entered, depth, Last::DotDot, slash));
                    }
                    false
                }
                name if last => {
                    let directory = place(base, entered, depth, Last::Dot, slash).directory;
                    let followed = match follow {
                        Follow::Always => true,
                        Follow::BeforeSlash => slash,
                        Follow::Never => false,
                    };
                    let target = match followed {
                        true => host.read_link(directory, name, link),
                        false => Err(Errno::Inval),
                    };
                    match target {
                        Ok(bytes) => insert(text, start, end, link, bytes)?,
                        Err(Errno::Inval | Errno::Noent) => {
                            let name = Last::Name(&text[*start..end]);
                            return Ok(place(base, entered, depth, name, slash));
                        }
                        Err(error) => return Err(error),
                    }
                    true
                }
                name => {
                    let directory = place(base, entered, depth, Last::Dot, slash).directory;
                    match host.open_directory(directory, name) {
                        Ok(handle) => {
                            *entered.get_mut(depth).ok_or(Errno::Nametoolong)? = Some(handle);
                            depth += 1;
                            false
                        }
                        Err(Errno::Loop | Errno::Notdir) => {
                            let bytes = host.read_link(directory, name, link).map_err(|error| {
                                if error == Errno::Inval {
                                    Errno::Notdir
                                } else {
                                    error
                                }
                            })?;
                            insert(text, start, end, link, bytes)?;
                            true
                        }
                        Err(error) => return Err(error),
                    }
                }
            };
            if is_link {
                links += 1;
                if links > LINKS {
                    return Err(Errno::Loop);
                }
            } else {
                *start = end;
            }
        }
    }
}

/// A place in the innermost directory that was entered.
fn place<'s, T>(
    base: &'s T,
    entered: &'s [Option<T>],
    depth: usize,
    last: Last<'s>,
    slash: bool,
) -> Place<'s, T> {
    let innermost = depth.checked_sub(1).and_then(|n| entered.get(n));
    Place { directory: innermost.and_then(Option::as_ref).unwrap_or(base), last, slash }
}

/// Replaces the component that ends at `end` by the target of a link.
fn insert(
    text: &mut [u8; PATH],
    start: &mut usize,
    end: usize,
    link: &[u8; PATH],
    bytes: usize,
) -> Result<(), Errno> {
    // A target that fills the buffer may have been cut off.
    let target = link.get(..bytes).filter(|_| bytes < PATH).ok_or(Errno::Nametoolong)?;
    match target.first() {
        None => return Err(Errno::Noent),
        Some(b'/') => return Err(Errno::Notcapable),
        Some(_) => {}
    }
    *start = end.checked_sub(bytes).ok_or(Errno::Nametoolong)?;
    text[*start..end].copy_from_slice(target);
    Ok(())
}
