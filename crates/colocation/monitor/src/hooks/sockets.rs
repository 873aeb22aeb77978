//! Kinds of sockets: the functions behind `connect`, `sendmsg`, `recvmsg` and so on (`include/net/sock.h` of Linux).

use super::source::{offset, visit_list, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::List;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Bytes of a name (`proto.name`).
const NAME_BYTES: usize = 32;

#[derive(Debug)]
pub(super) struct Sockets {
    list: List,
    name: u64,
    /// Offsets of a kind's functions.
    functions: Vec<u64>,
}

impl Source for Sockets {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("proto", "accept", Optional),
            ("proto", "backlog_rcv", Optional),
            ("proto", "bind", Optional),
            ("proto", "bind_add", Optional),
            ("proto", "close", Optional),
            ("proto", "connect", Optional),
            ("proto", "destroy", Optional),
            ("proto", "disconnect", Optional),
            ("proto", "get_port", Optional),
            ("proto", "getsockopt", Optional),
            ("proto", "hash", Optional),
            ("proto", "init", Optional),
            ("proto", "ioctl", Optional),
            ("proto", "keepalive", Optional),
            ("proto", "name", Optional),
            ("proto", "node", Optional),
            ("proto", "pre_connect", Optional),
            ("proto", "put_port", Optional),
            ("proto", "recvmsg", Optional),
            ("proto", "rehash", Optional),
            ("proto", "release_cb", Optional),
            ("proto", "sendmsg", Optional),
            ("proto", "sendpage", Optional),
            ("proto", "setsockopt", Optional),
            ("proto", "shutdown", Optional),
            ("proto", "splice_eof", Optional),
            ("proto", "unhash", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden socket operation";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let kind = |member| offset(profile, "proto", member);
        // Not every version has all of them.
        let functions = Self::WANTS.members.iter();
        let functions = functions.filter(|(_, member, _)| !matches!(*member, "name" | "node"));
        Some(Self {
            list: List { head: profile.symbol("proto_list")?, link: kind("node")? },
            name: kind("name")?,
            functions: functions.filter_map(|(_, member, _)| kind(member)).collect(),
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let next = visit_list(kernel, self.list.head, at, |link| {
            let object = link.wrapping_sub(self.list.link);
            for hook in self.functions.iter().filter_map(|&at| Hook::code(kernel, object, at)) {
                // Those of the image are never freed.
                see(if kernel.in_image(object) { hook.fixed(0) } else { hook });
            }
        });
        Some(next).filter(|next| next.list == 0)
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let name = kernel.c_string(object.wrapping_add(self.name), NAME_BYTES);
        format!("sockets of {}", name.unwrap_or_default())
    }
}
