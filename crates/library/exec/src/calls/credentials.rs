//! Calls that change the thread's credentials: in the host, and then in the library, see [`crate::credentials`].

use super::{Call, Outcome};
use crate::state::State;
use crate::{host, library};

pub(super) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_setuid, change),
    (libc::SYS_setgid, change),
    (libc::SYS_setreuid, change),
    (libc::SYS_setregid, change),
    (libc::SYS_setresuid, change),
    (libc::SYS_setresgid, change),
    (libc::SYS_setfsuid, change),
    (libc::SYS_setfsgid, change),
    (libc::SYS_setgroups, change),
    (libc::SYS_capset, change),
];

fn change(state: &State, a: [u64; 6]) -> Outcome {
    let result = host::call(state.number.get() as i64, &a);
    if result < 0 {
        return Outcome::Done(result);
    }
    // A program that learns of no error believes that it has given up its rights.
    Outcome::Done(library::follow_credentials(state).map_or_else(|error| error, |()| result))
}
