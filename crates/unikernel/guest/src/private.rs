//! Memory that each virtual machine of a family has for itself, at the same address.
//!
//! What lies there means something else in each of them, so a pointer into it must not go to another. [`PerVm`] is a
//! static of which each machine has its own copy; it hands out values only. Where a pointer is needed it is a
//! [`Private`], which the compiler does not let out of the machine.

use core::cell::UnsafeCell;
use core::marker::PhantomData;

/// Something that has a meaning in this virtual machine only, such as a pointer to private memory. It cannot be sent
/// to another, nor shared with it:
///
/// ```compile_fail,E0277
/// use kyozon_unikernel::{private::Private, thread};
/// let here = Private::new(7);
/// thread::spawn(move || here.get());
/// ```
///
/// ```compile_fail,E0277
/// use kyozon_unikernel::{private::Private, thread};
/// let here = Private::new(7);
/// thread::scope(|scope| {
///     scope.spawn(|| here.get());
/// });
/// ```
///
/// What it stands for can, where that is a plain value:
///
/// ```
/// use kyozon_unikernel::private::Private;
/// let here = Private::new(7);
/// let value = here.get();
/// std::thread::spawn(move || assert_eq!(value, 7)).join().unwrap();
/// ```
#[derive(Debug)]
pub struct Private<T> {
    value: T,
    here: PhantomData<*mut ()>,
}

impl<T> Private<T> {
    /// Keeps it in this machine.
    pub const fn new(value: T) -> Self {
        Self { value, here: PhantomData }
    }

    /// The value, out of its keeping. No reference is given: that could be sent where a value cannot.
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        self.value
    }
}

/// A static of which each virtual machine has its own, which begins as it was written: by [`private!`](crate::private).
#[repr(transparent)]
pub struct PerVm<T>(UnsafeCell<T>);

// SAFETY: each machine reaches its own copy only, and has one thread of execution; no reference to it is given out, so
// what is sent to another machine with a reference to the static is that machine's copy there.
unsafe impl<T> Sync for PerVm<T> {}

impl<T> PerVm<T> {
    /// What [`private!`](crate::private) does.
    ///
    /// # Safety
    ///
    /// For a static in the section `.private` only.
    pub const unsafe fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// This machine's value.
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: this machine's only thread is here, and nobody has a reference.
        unsafe { *self.0.get() }
    }

    /// Sets this machine's value.
    pub fn set(&self, value: T) {
        drop(self.replace(value));
    }

    /// Sets this machine's value, and returns what it was.
    pub fn replace(&self, value: T) -> T {
        // SAFETY: as above. Nothing runs between the read and the write.
        unsafe { core::mem::replace(&mut *self.0.get(), value) }
    }

    /// Where this machine's value lies, for this machine.
    pub fn pointer(&self) -> Private<*mut T> {
        Private::new(self.0.get())
    }
}

/// Statics of which each virtual machine has its own:
///
/// ```text
/// kyozon_unikernel::private! {
///     /// How often this machine has done it.
///     static COUNT: u32 = 0;
/// }
/// COUNT.set(COUNT.get() + 1);
/// ```
#[macro_export]
macro_rules! private {
    ($($(#[$about:meta])* $shown:vis static $name:ident: $kind:ty = $value:expr;)*) => {$(
        $(#[$about])*
        #[link_section = ".private"]
        $shown static $name: $crate::private::PerVm<$kind> = {
            const VALUE: $kind = $value;
            // SAFETY: it lies in that section.
            unsafe { $crate::private::PerVm::new(VALUE) }
        };
    )*};
}
