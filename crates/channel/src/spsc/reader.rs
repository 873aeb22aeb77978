//! The side that reads.

use super::control::{Control, Sleep};
use super::{limit, room, Window, RECORD, SKIP, WORD};
use crate::data::Data;
use crate::error::Error;
use crate::park::{Group, Park};
use crate::word::Word;
use core::ops::Deref;
use core::sync::atomic::Ordering::{Release, SeqCst};

/// Reads records. `C` leads to the ring's [`Control`], `D` is its data.
#[derive(Debug)]
pub struct Reader<C, D> {
    control: C,
    window: Window<D>,
    sleep: Sleep,
}

impl<W: Word, C: Deref<Target = Control<W>>, D: Data> Reader<C, D> {
    /// Becomes the ring's reader, and goes on where one before was. There must be no other. Fails as
    /// [`super::Writer::attach`].
    pub fn attach<G: Park + ?Sized>(control: C, data: D, group: &G) -> Result<Self, Error> {
        let window = Window::new(&control, data)?;
        let sleep = control.reader.attach(group.me());
        Ok(Self { control, window, sleep })
    }

    /// Waits for a record, copies it to `to`, gives its room back and wakes the writer. Bytes of the record.
    ///
    /// Fails with [`Error::TimedOut`]; with [`Error::TooShort`], and the record stays; with [`Error::Closed`] or
    /// [`Error::PeerDied`] where there is none and none will come, unless another writer takes over: who expects one
    /// tries again; with [`Error::Corrupt`].
    #[inline]
    pub fn recv<G>(
        &mut self,
        to: &mut [u8],
        group: &G,
        deadline: Option<u64>,
    ) -> Result<usize, Error>
    where
        G: Group + ?Sized,
    {
        let view = self.peek(group, deadline)?;
        let len = view.read(to)?;
        view.release(group);
        Ok(len)
    }

    /// As [`Reader::recv`], but `None` where there is no record at this moment.
    #[inline]
    pub fn try_recv<G>(&mut self, to: &mut [u8], group: &G) -> Result<Option<usize>, Error>
    where
        G: Park + ?Sized,
    {
        let Some(view) = self.try_peek()? else {
            return Ok(None);
        };
        let len = view.read(to)?;
        view.release(group);
        Ok(Some(len))
    }

    /// The next record, to be read in place. Waits for it, and fails, as [`Reader::recv`].
    #[inline]
    pub fn peek<G>(&mut self, group: &G, deadline: Option<u64>) -> Result<View<'_, C, D>, Error>
    where
        G: Group + ?Sized,
    {
        let len = match next(&mut self.window, &self.control)? {
            Some(len) => len,
            None => self.wait(group, deadline)?,
        };
        Ok(View { reader: self, len })
    }

    /// The next record if there is one.
    #[inline]
    pub fn try_peek(&mut self) -> Result<Option<View<'_, C, D>>, Error> {
        let len = next(&mut self.window, &self.control)?;
        Ok(len.map(|len| View { reader: self, len }))
    }

    #[cold]
    fn wait<G>(&mut self, group: &G, deadline: Option<u64>) -> Result<usize, Error>
    where
        G: Group + ?Sized,
    {
        let control: &Control<W> = &self.control;
        let window = &mut self.window;
        let next = || next(window, control);
        control.reader.wait(&control.writer, group, &mut self.sleep, deadline, next)
    }

    /// Wakes the writer where it sleeps; needed after [`View::release_quietly`] only.
    #[inline]
    pub fn notify<G: Park + ?Sized>(&mut self, group: &G) {
        self.control.writer.wake(group, &mut self.sleep);
    }

    /// Says that nobody reads any more.
    pub fn close<G: Park + ?Sized>(mut self, group: &G) {
        self.control.reader.close(group.me().word());
        self.notify(group);
    }
}

/// Bytes of the next record. Looks at the writer's position only where all that we know of has been read.
#[inline]
fn next<W: Word, D: Data>(
    window: &mut Window<D>,
    control: &Control<W>,
) -> Result<Option<usize>, Error> {
    if window.corrupt {
        return Err(Error::Corrupt);
    }
    if window.used() == 0 {
        let head = control.writer.position.load(SeqCst);
        if head % WORD != 0 || head.wrapping_sub(window.tail) > window.capacity {
            return window.refuse();
        }
        window.head = head;
        if window.used() == 0 {
            return Ok(None);
        }
    }
    // A record, perhaps after what is to be skipped; each word is loaded once.
    for _ in 0..2 {
        let (offset, to_end) = window.place(window.tail);
        let word = window.data.load_word(offset);
        let len = word as u32 as usize;
        match word >> 32 {
            RECORD if len <= limit(window.capacity as usize) => {
                let fits = room(len) <= to_end.min(window.used());
                return if fits { Ok(Some(len)) } else { window.refuse() };
            }
            SKIP if offset != 0 && to_end < window.used() => {
                window.tail = window.tail.wrapping_add(to_end);
            }
            _ => return window.refuse(),
        }
    }
    window.refuse()
}

/// The next record. Dropped, it stays the next.
#[derive(Debug)]
pub struct View<'a, C, D> {
    reader: &'a mut Reader<C, D>,
    len: usize,
}

impl<'a, W: Word, C: Deref<Target = Control<W>>, D: Data> View<'a, C, D> {
    /// Bytes of it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ring's data, and the offset at which the record lies there, a multiple of 8: to read in place.
    pub fn place(&self) -> (&D, usize) {
        let window = &self.reader.window;
        let (offset, _) = window.place(window.tail.wrapping_add(WORD));
        (&window.data, offset)
    }

    /// Copies the record to the beginning of `to`; bytes of it. Fails with [`Error::TooShort`].
    #[inline]
    pub fn read(&self, to: &mut [u8]) -> Result<usize, Error> {
        let to = to.get_mut(..self.len).ok_or(Error::TooShort { needed: self.len })?;
        let (data, offset) = self.place();
        data.read(offset, to);
        Ok(self.len)
    }

    /// Gives the record's room back and wakes the writer.
    #[inline]
    pub fn release<G: Park + ?Sized>(self, group: &G) {
        self.retire().notify(group);
    }

    /// As [`View::release`], but a writer that sleeps goes on sleeping: call [`Reader::notify`] after the last of them.
    #[inline]
    pub fn release_quietly(self) {
        self.retire();
    }

    #[inline]
    fn retire(self) -> &'a mut Reader<C, D> {
        let end = self.reader.window.tail.wrapping_add(room(self.len));
        self.reader.window.tail = end;
        self.reader.control.reader.position.store(end, Release);
        self.reader
    }
}
