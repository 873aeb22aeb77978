//! Lines that wait for the serial line, in memory that Linux cannot reach behind a wall.
//!
//! The serial line is slow. A copy that Linux can change, such as the event ring once a wall is open, must not decide
//! about its text. If lines come faster than they are sent, the oldest are lost, and a line says how many pieces.

use crate::line::Line;
use kyozon_channel::events::printable;

/// Bytes of one piece of a line.
const PIECE_BYTES: usize = 128;

/// A piece of a line. The last piece of a line ends with a line feed.
#[derive(Clone, Copy)]
struct Piece {
    text: [u8; PIECE_BYTES],
    bytes: usize,
}

impl Piece {
    const EMPTY: Self = Self { text: [0; PIECE_BYTES], bytes: 0 };

    fn of(text: &[u8]) -> Self {
        let mut piece = Self::EMPTY;
        piece.bytes = text.len();
        for (to, from) in piece.text.iter_mut().zip(text) {
            *to = *from;
        }
        piece
    }
}

/// The last `PIECES` pieces that were not sent yet.
pub struct Backlog<const PIECES: usize> {
    pieces: [Piece; PIECES],
    written: u64,
    read: u64,
    /// The piece that is being sent.
    piece: Piece,
    sent: usize,
}

impl<const PIECES: usize> Backlog<PIECES> {
    /// Nothing to send.
    pub const fn new() -> Self {
        Self { pieces: [Piece::EMPTY; PIECES], written: 0, read: 0, piece: Piece::EMPTY, sent: 0 }
    }

    /// Appends a line. Bytes that are not printable ASCII become `?`.
    pub fn push(&mut self, line: &[u8]) {
        let mut rest = line;
        loop {
            let (now, later) = rest.split_at(rest.len().min(PIECE_BYTES - 1));
            let mut piece = Piece::of(now);
            for byte in &mut piece.text[..now.len()] {
                *byte = printable(*byte);
            }
            if later.is_empty() {
                piece.text[piece.bytes] = b'\n';
                piece.bytes += 1;
            }
            self.pieces[(self.written % PIECES as u64) as usize] = piece;
            self.written += 1;
            rest = later;
            if rest.is_empty() {
                return;
            }
        }
    }

    /// Whether there is a byte to send.
    pub fn is_waiting(&self) -> bool {
        self.sent < self.piece.bytes || self.read != self.written
    }

    /// The next byte to send.
    pub fn pop(&mut self) -> Option<u8> {
        if self.sent == self.piece.bytes {
            self.piece = self.next_piece()?;
            self.sent = 0;
        }
        self.sent += 1;
        Some(self.piece.text[self.sent - 1])
    }

    fn next_piece(&mut self) -> Option<Piece> {
        let first = self.written.saturating_sub(PIECES as u64);
        if self.read < first {
            let lost = first - self.read;
            self.read = first;
            let begun = self.piece.bytes > 0 && self.piece.text[self.piece.bytes - 1] != b'\n';
            let end = if begun { "\n" } else { "" };
            return Some(Piece::of(
                Line::new(format_args!("{end}-- {lost} pieces of lines lost\n")).bytes(),
            ));
        }
        if self.read == self.written {
            return None;
        }
        let piece = self.pieces[(self.read % PIECES as u64) as usize];
        self.read += 1;
        Some(piece)
    }
}

impl<const PIECES: usize> Default for Backlog<PIECES> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent<const PIECES: usize>(backlog: &mut Backlog<PIECES>) -> String {
        core::iter::from_fn(|| backlog.pop().map(char::from)).collect()
    }

    #[test]
    fn lines_are_sent_in_order() {
        let mut backlog = Backlog::<4>::new();
        for line in [&b"one\x1b"[..], b"", b"two"] {
            backlog.push(line);
        }
        assert!(backlog.is_waiting());
        assert_eq!(sent(&mut backlog), "one?\n\ntwo\n");
        assert!(!backlog.is_waiting());
    }

    #[test]
    fn long_lines_take_several_pieces() {
        for bytes in [PIECE_BYTES - 2, PIECE_BYTES - 1, PIECE_BYTES, 3 * PIECE_BYTES] {
            let mut backlog = Backlog::<4>::new();
            backlog.push(&vec![b'x'; bytes]);
            assert_eq!(sent(&mut backlog), "x".repeat(bytes) + "\n");
        }
    }

    #[test]
    fn oldest_lines_are_lost_and_counted() {
        let mut backlog = Backlog::<4>::new();
        for i in 0..10u8 {
            backlog.push(&[b'0' + i]);
        }
        assert_eq!(sent(&mut backlog), "-- 6 pieces of lines lost\n6\n7\n8\n9\n");
    }

    #[test]
    fn line_being_sent_is_ended_before_a_loss() {
        let mut backlog = Backlog::<2>::new();
        backlog.push(&[b'x'; PIECE_BYTES]);
        assert_eq!(backlog.pop(), Some(b'x'));
        (0..3).for_each(|_| backlog.push(b"y"));
        let all = sent(&mut backlog);
        assert_eq!(all, "x".repeat(PIECE_BYTES - 2) + "\n-- 2 pieces of lines lost\ny\ny\n");
    }
}
