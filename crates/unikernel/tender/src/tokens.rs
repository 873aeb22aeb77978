//! Tokens of peers: a sleeper is woken by its own.
//!
//! One is made when a peer gets its number, so that a start does not wait for 64 of them; guests in processes have to
//! have all at theirs.

use crate::error::{Context, Present, Result};
use std::sync::OnceLock;
use vmm_sys_util::eventfd::EventFd;

/// Tokens by number.
#[derive(Debug)]
pub struct Tokens(Vec<OnceLock<EventFd>>);

impl Tokens {
    /// Room for `room` tokens, of which the first `made` exist.
    pub fn new(room: usize, made: usize) -> Result<Self> {
        let tokens = Self((0..room).map(|_| OnceLock::new()).collect());
        (0..made).try_for_each(|number| tokens.make(number).map(drop))?;
        Ok(tokens)
    }

    /// How many there can be.
    pub fn room(&self) -> usize {
        self.0.len()
    }

    /// The token of a number, where that is there.
    pub fn get(&self, number: usize) -> Option<&EventFd> {
        self.0.get(number)?.get()
    }

    /// The token of a number, which is made where it is not there.
    pub fn make(&self, number: usize) -> Result<&EventFd> {
        let token = self.0.get(number).present("no token has this number")?;
        if token.get().is_none() {
            let made = EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC).context("eventfd")?;
            // If another thread made it meanwhile, that one stays.
            let _ = token.set(made);
        }
        token.get().present("a token was made and is missing")
    }

    /// Those that are there, in their order.
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
