//! Tokens of peers: each peer sleeps on its own token, and a write to the token wakes it.
//!
//! A token is made when a peer gets its number, so that the start does not wait for 64 of them. A guest in a process
//! can ring only tokens that it has from its start on, so for such guests all tokens are made at the start.

use crate::error::{Context, Present, Result};
use std::sync::OnceLock;
use vmm_sys_util::eventfd::EventFd;

/// Tokens by number.
#[derive(Debug)]
pub struct Tokens(Vec<OnceLock<EventFd>>);

impl Tokens {
    /// Makes the first `made` of `room` tokens.
    pub fn new(room: usize, made: usize) -> Result<Self> {
        let tokens = Self((0..room).map(|_| OnceLock::new()).collect());
        (0..made).try_for_each(|number| tokens.make(number).map(drop))?;
        Ok(tokens)
    }

    /// Maximum number of tokens.
    pub fn room(&self) -> usize {
        self.0.len()
    }

    /// The token of a number; `None` if it was not made.
    pub fn get(&self, number: usize) -> Option<&EventFd> {
        self.0.get(number)?.get()
    }

    /// The token of a number. Makes it if it does not exist.
    ///
    /// # Errors
    ///
    /// The number is not below [`Tokens::room`], or the process has too many open files.
    pub fn make(&self, number: usize) -> Result<&EventFd> {
        let token = self.0.get(number).present("no token has this number")?;
        if token.get().is_none() {
            let made = EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC).context("eventfd")?;
            // If another thread has made it meanwhile, that one stays.
            let _ = token.set(made);
        }
        token.get().present("a token was made and is missing")
    }

    /// The existing tokens, by number.
    pub fn all(&self) -> Vec<&EventFd> {
        self.0.iter().filter_map(OnceLock::get).collect()
    }
}

impl From<Vec<EventFd>> for Tokens {
    fn from(tokens: Vec<EventFd>) -> Self {
        Self(tokens.into_iter().map(OnceLock::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once() {
        let tokens = Tokens::new(3, 1).unwrap();
        assert!(tokens.get(0).is_some() && tokens.get(1).is_none() && tokens.get(3).is_none());
        tokens.make(1).unwrap().write(1).unwrap();
        assert_eq!(tokens.make(1).unwrap().read().unwrap(), 1);
        assert_eq!((tokens.all().len(), tokens.room()), (2, 3));
        assert!(tokens.make(3).is_err());
    }
}
