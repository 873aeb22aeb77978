//! The reader.

use super::control::{Control, Sleep};
use super::{follow, limit, room, Window, RECORD, SHORT, SKIP, WORD};
use crate::data::Data;
use crate::error::Error;
use crate::park::{Group, Park};
use crate::word::Word;
use core::ops::Deref;
use core::sync::atomic::Ordering::{Release, SeqCst};

/// A reader that had to wait for a short record lets this many bytes gather, or a quarter of the ring, if records
/// arrive fast: a processor that reads what was just written also fetches the bytes that are written next, and takes
/// their lines away from the writer.
const GATHER_BYTES: u64 = 4096;

/// Decides when a reader lets records gather. If they arrive one by one, gathering only delays them.
#[derive(Debug)]
struct Gathering {
    /// Waits that are left until the next attempt.
    waits: u32,
    /// Waits between two attempts after an attempt in vain.
    pause: u32,
}

/// Range of [`Gathering::pause`].
const PAUSES: core::ops::RangeInclusive<u32> = 64..=4096;

impl Default for Gathering {
    fn default() -> Self {
        Self { waits: 0, pause: *PAUSES.start() }
    }
}

impl Gathering {
    /// Whether to gather at this wait.
    fn is_due(&mut self) -> bool {
        let due = self.waits == 0;
        self.waits = self.waits.saturating_sub(1);
        due
    }

    /// Records the outcome of an attempt: whether records arrived.
    fn record(&mut self, came: bool) {
        if came {
            *self = Self::default();
        } else {
            *self = Self { waits: self.pause, pause: (2 * self.pause).min(*PAUSES.end()) };
        }
    }
}

/// Reads records. `C` points to the ring's [`Control`], `D` is its data.
#[derive(Debug)]
pub struct Reader<C, D> {
    control: C,
    window: Window<D>,
    sleep: Sleep,
    gathering: Gathering,
}

impl<W: Word, C: Deref<Target = Control<W>>, D: Data> Reader<C, D> {
    /// Becomes the ring's reader, and continues at its predecessor's position. There must be no other reader.
    ///
    /// # Errors
    /// The same as [`super::Writer::attach`].
    pub fn attach<G: Park + ?Sized>(control: C, data: D, group: &G) -> Result<Self, Error> {
        let window = Window::new(&control, data)?;
        let sleep = control.reader.attach(group.me());
        Ok(Self { control, window, sleep, gathering: Gathering::default() })
    }

    /// Waits for a record until `deadline` in nanoseconds, copies it to `to`, releases its room and wakes the writer.
    /// Returns the bytes of the record.
    ///
    /// # Errors
    /// [`Error::TimedOut`] at the deadline; [`Error::BufferTooShort`], and the record stays; [`Error::Closed`] or
    /// [`Error::PeerDied`] if there is no record and none will arrive, unless another writer takes over: a caller that
    /// expects one tries again; [`Error::Corrupt`] if the writer broke the protocol.
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

    /// Like [`Reader::recv`], but returns `None` if there is no record at this moment.
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

    /// Returns the next record, to be read in place. Waits and fails like [`Reader::recv`].
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

    /// Returns the next record if there is one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the writer broke the protocol.
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
            let enough = GATHER_BYTES.min(window.capacity / 4);
            let grew = follow(group, deadline, enough, || {
                refresh_head(window, control)?;
                Ok(window.used())
            })?;
            self.gathering.record(grew);
        }
        Ok(len)
    }

    /// Wakes the writer if it sleeps. Needed only after [`View::release_quietly`].
    #[inline]
    pub fn notify<G: Park + ?Sized>(&mut self, group: &G) {
        self.control.writer.wake(group, &mut self.sleep);
    }

    /// Closes the ring: this side reads no more.
    pub fn close<G: Park + ?Sized>(mut self, group: &G) {
        self.control.reader.close(group.me().word());
        self.notify(group);
    }
}

/// Loads the writer's position and checks it.
fn refresh_head<W: Word, D: Data>(
    window: &mut Window<D>,
    control: &Control<W>,
) -> Result<(), Error> {
    let head = control.writer.position.load(SeqCst);
    let used = head.wrapping_sub(window.tail);
    // The writer's position only ever moves away from the reader's.
    if !head.is_multiple_of(WORD) || used > window.capacity || used < window.used() {
        return window.refuse();
    }
    window.head = head;
    Ok(())
}

/// Bytes of the next record. Loads the writer's position only if all records up to its known position have been read.
#[inline]
fn next<W: Word, D: Data>(
    window: &mut Window<D>,
    control: &Control<W>,
) -> Result<Option<usize>, Error> {
    if window.corrupt {
        return Err(Error::Corrupt);
    }
    if window.used() == 0 {
        refresh_head(window, control)?;
        if window.used() == 0 {
            return Ok(None);
        }
    }
    // At most one skip precedes a record. Each word is loaded once.
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

/// The next record. If the view is dropped, it stays the next record.
#[derive(Debug)]
pub struct View<'a, C, D> {
    reader: &'a mut Reader<C, D>,
    len: usize,
}

impl<'a, W: Word, C: Deref<Target = Control<W>>, D: Data> View<'a, C, D> {
    /// Bytes of the record.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the record has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The ring's data and the record's offset in it, a multiple of 8: for reading in place.
    pub fn place(&self) -> (&D, usize) {
        let window = &self.reader.window;
        let (offset, _) = window.place(window.tail.wrapping_add(WORD));
        (&window.data, offset)
    }

    /// Copies the record to the beginning of `to`; returns its bytes.
    ///
    /// # Errors
    /// [`Error::BufferTooShort`] if `to` is shorter than the record.
    #[inline]
    pub fn read(&self, to: &mut [u8]) -> Result<usize, Error> {
        let to = to.get_mut(..self.len).ok_or(Error::BufferTooShort { needed: self.len })?;
        let (data, offset) = self.place();
        data.read(offset, to);
        Ok(self.len)
    }

    /// Releases the record's room and wakes the writer.
    #[inline]
    pub fn release<G: Park + ?Sized>(self, group: &G) {
        self.retire().notify(group);
    }

    /// Like [`View::release`], but does not wake a sleeping writer: call [`Reader::notify`] after the last release.
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
