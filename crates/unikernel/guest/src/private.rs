//! Memory that each virtual machine of a family has for itself, at the same address.
//!
//! Its contents differ between machines, so a pointer into it must not reach another machine. [`PerVm`] is a static of
//! which each machine has its own copy; it hands out values only. If a pointer is needed, it is a [`Private`], which
//! the compiler does not let cross to another machine.

use core::cell::UnsafeCell;
use core::marker::PhantomData;

/// A value that is valid in this virtual machine only, such as a pointer to private memory. It cannot be sent to
/// another machine, nor shared with it:
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
/// A plain value inside it can be copied out and sent:
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
    /// Confines a value to this machine.
    pub const fn new(value: T) -> Self {
        Self { value, here: PhantomData }
    }

    /// A copy of the value. There is no way to get a reference, as a reference to a `Sync` value could be sent.
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        self.value
    }
}

/// A static of which each virtual machine has its own copy, with the same initial value. [`private!`](crate::private)
/// makes it.
#[repr(transparent)]
pub struct PerVm<T>(UnsafeCell<T>);

// SAFETY: each machine reaches only its own copy, and has one thread of execution. No reference to the value is handed
// out; a reference to the static, sent to another machine, names that machine's copy there.
unsafe impl<T> Sync for PerVm<T> {}

impl<T> PerVm<T> {
    /// Makes the static's value, for [`private!`](crate::private).
    ///
    /// # Safety
    ///
    /// The value must initialize a static in the section `.private`.
    pub const unsafe fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// This machine's value.
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: this is the machine's only thread, and no code has a reference.
        unsafe { *self.0.get() }
    }

    /// Sets this machine's value.
    pub fn set(&self, value: T) {
        drop(self.replace(value));
    }

    /// Sets this machine's value. Returns the old one.
    pub fn replace(&self, value: T) -> T {
        // SAFETY: as above. Nothing runs between the read and the write.
        unsafe { core::mem::replace(&mut *self.0.get(), value) }
    }

    /// A pointer to this machine's value, for use in this machine.
    pub fn pointer(&self) -> Private<*mut T> {
        Private::new(self.0.get())
    }
}

/// Defines statics of which each virtual machine has its own copy:
///
/// ```text
/// kyozon_unikernel::private! {
///     /// Events in this machine.
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
            // SAFETY: the static lies in `.private`.
            unsafe { $crate::private::PerVm::new(VALUE) }
        };
    )*};
}
