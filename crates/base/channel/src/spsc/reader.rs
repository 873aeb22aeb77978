//! The side that reads.

use super::control::{Control, Sleep};
use super::{follow, limit, room, Window, RECORD, SHORT, SKIP, WORD};
use crate::data::Data;
use crate::error::Error;
use crate::park::{Group, Park};
use crate::word::Word;
use core::ops::Deref;
use core::sync::atomic::Ordering::{Release, SeqCst};

/// Who waited for a short record lets so many bytes gather, or a quarter of the ring, where they come fast: a processor
/// that reads what was just written fetches what is written next, too, and takes it away from the writer.
const GATHERED: u64 = 4096;

/// When a reader lets records gather: for one who gets them one by one it would be a delay.
#[derive(Debug)]
struct Gathering {
    /// Waits until it is tried.
    waits: u32,
    /// Waits until it is tried anew, where it was for nothing.
    pause: u32,
}

/// Of [`Gathering::pause`], at least and at most.
const PAUSES: core::ops::RangeInclusive<u32> = 64..=4096;

impl Default for Gathering {
    fn default() -> Self {
        Self { waits: 0, pause: *PAUSES.start() }
    }
}

impl Gathering {
    /// Whether this wait is one to try it.
    fn is_due(&mut self) -> bool {
        let due = self.waits == 0;
        self.waits = self.waits.saturating_sub(1);
        due
    }

    /// It was tried: whether records came.
    fn went(&mut self, came: bool) {
        if came {
            *self = Self::default();
        } else {
            *self = Self { waits: self.pause, pause: (2 * self.pause).min(*PAUSES.end()) };
        }
    }
}

/// Reads records. `C` leads to the ring's [`Control`], `D` is its data.
#[derive(Debug)]
pub struct Reader<C, D> {
    control: C,
    window: Window<D>,
    sleep: Sleep,
    gathering: Gathering,
}

impl<W: Word, C: Deref<Target = Control<W>>, D: Data> Reader<C, D> {
    /// Becomes the ring's reader, and goes on where one before was. There must be no other. Fails as
    /// [`super::Writer::attach`].
    pub fn attach<G: Park + ?Sized>(control: C, data: D, group: &G) -> Result<Self, Error> {
        let window = Window::new(&control, data)?;
        let sleep = control.reader.attach(group.me());
        Ok(Self { control, window, sleep, gathering: Gathering::default() })
    }

    /// Waits for a record, copies it to `to`, gives its room back and wakes the writer. Bytes of the record.
    ///
    /// Fails with [`Error::TimedOut`]; with [`Error::BufferTooShort`], and the record stays; with [`Error::Closed`] or
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
        let first = || next(window, control);
        let len = control.reader.wait(&control.writer, group, &mut self.sleep, deadline, first)?;
        if len < SHORT && self.gathering.is_due() {
            let enough = GATHERED.min(window.capacity / 4);
            let grew = follow(group, deadline, enough, || {
                arrived(window, control)?;
                Ok(window.used())
            })?;
            self.gathering.went(grew);
        }
        Ok(len)
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

/// Looks at the writer's position.
fn arrived<W: Word, D: Data>(window: &mut Window<D>, control: &Control<W>) -> Result<(), Error> {
    let head = control.writer.position.load(SeqCst);
    let used = head.wrapping_sub(window.tail);
    // It only ever goes away from ours.
    if head % WORD != 0 || used > window.capacity || used < window.used() {
        return window.refuse();
    }
    window.head = head;
    Ok(())
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
        arrived(window, control)?;
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

    /// Copies the record to the beginning of `to`; bytes of it. Fails with [`Error::BufferTooShort`].
    #[inline]
    pub fn read(&self, to: &mut [u8]) -> Result<usize, Error> {
        let to = to.get_mut(..self.len).ok_or(Error::BufferTooShort { needed: self.len })?;
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
