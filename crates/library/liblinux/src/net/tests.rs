use super::*;
use crate::host::Host;
use crate::Errno;

#[test]
fn prefixes_need_an_address_and_a_length() {
    let prefix: Prefix = "fd00::2/64".parse().expect("a prefix");
    assert_eq!((prefix.address, prefix.bits), ("fd00::2".parse().expect("an address"), 64));
    for text in ["10.0.0.2", "10.0.0.2/33", "fd00::/129", "10.0.0/8", "/8", "a/8", "10.0.0.2/-1"] {
        let error = text.parse::<Prefix>().expect_err(text).to_string();
        assert_eq!(error, format!("{text:?} is no address with a prefix: write 10.0.0.2/24"));
    }
}

/// The code is the same for every kernel, so the one below the tests shows that messages are well-formed.
#[test]
fn the_host_has_a_loopback_interface() {
    let lo = Host.interface("lo").expect("lo");
    assert_eq!((lo.index, lo.mac), (1, vec![0; 6]));
    let error = Host.interface("none-such").expect_err("there is none");
    assert_eq!(error.errno, Errno(libc::ENODEV));
    assert!(error.to_string().starts_with("there is no interface none-such: the kernel has lo"));
}
