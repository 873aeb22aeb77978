//! Changes of interfaces, by the same code for the library and for the host.

use crate::common;
use liblinux::net::Network;
use liblinux::Errno;

#[test]
fn lo_is_up_after_boot() {
    let (instance, thread) = common::boot(common::config());
    let lo = thread.interface("lo").expect("lo");
    assert!(lo.is_up() && lo.index == 1);
    let names = thread.interfaces().expect("a list").into_iter().map(|lo| lo.name);
    assert!(!names.into_iter().any(|name| name.starts_with("eth")));
    thread.set_link("lo", false).expect("down");
    assert!(!thread.interface("lo").expect("lo").is_up());
    instance.halt(thread).expect("halt");
}

#[test]
fn errors_name_the_change() {
    let (instance, thread) = common::boot(common::config());
    let error = thread.set_link("eth0", true).expect_err("no device");
    let text = error.to_string();
    assert!(text.starts_with("there is no interface eth0: the kernel has lo"), "{text}");
    let error = thread.add_address("lo", "10.0.0.1").expect_err("no prefix");
    assert_eq!(error.errno, Errno(libc::EINVAL));
    let error = thread.remove_address("lo", "10.0.0.1/8").expect_err("no such address");
    assert_eq!(error.errno, Errno(libc::EADDRNOTAVAIL));
    assert!(error.to_string().starts_with("cannot remove the address 10.0.0.1/8 of lo: "));
    instance.halt(thread).expect("halt");
}
