use super::*;

#[test]
fn addresses_survive_packing() {
    let v6 = SocketAddrV6::new("fe80::1:2".parse().expect("an address"), 8080, 5, 3);
    for address in ["10.1.2.3:65535".parse().expect("an address"), SocketAddr::V6(v6)] {
        let mut bytes = packed(address);
        assert!([16, ADDRESS].contains(&bytes.len()));
        bytes.resize(ADDRESS, 0);
        assert_eq!(unpacked(bytes[..].try_into().expect("28 bytes")), Ok(address));
    }
    assert_eq!(unpacked(&[0; ADDRESS]), Err(Errno(libc::EAFNOSUPPORT)));
}
