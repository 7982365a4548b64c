//! Which addresses the internet has, and which are somebody's own; pure.
//!
//! Addresses that carry another one within them are what that one is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of place an address leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// The internet.
    Public,
    /// This machine, or one of its own network.
    Own,
    /// Link-local (where clouds tell secrets to their machines), multicast, reserved: for nobody but who names it.
    Special,
}

pub(super) fn class(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v4(address: Ipv4Addr) -> Class {
    match address.octets() {
        [10, ..] | [127, ..] | [192, 168, ..] => Class::Own,
        [172, 16..=31, ..] | [100, 64..=127, ..] => Class::Own,
        // Alibaba's metadata server lies in the range for carriers, which is taken above: named here all the same.
        [0, ..] | [169, 254, ..] | [224..=255, ..] => Class::Special,
        // Protocol assignments, documentation, the former 6to4 relay, benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Class::Special
        }
        _ => Class::Public,
    }
}

fn class_v6(address: Ipv6Addr) -> Class {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        class_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Own,
        // Mapped, the old compatible form, translated (NAT64), 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low),
        [0, 0, 0, 0, 0xffff, 0, high, low] => embedded(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        [0xfc00..=0xfdff, ..] => Class::Own,
        // Teredo hides an address, documentation, benchmarks, ORCHID.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Special,
        [0x2000..=0x3fff, ..] => Class::Public,
        // Unspecified, link-local, site-local, multicast, discard, local NAT64, and what is not assigned.
        _ => Class::Special,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_internet_is_public() {
        for (class_of, addresses) in [
            (
                Class::Public,
                &[
                    "1.1.1.1",
                    "8.8.8.8",
                    "149.154.167.220",
                    "172.15.255.255",
                    "172.32.0.0",
                    "100.63.255.255",
                    "100.128.0.0",
                    "192.167.0.1",
                    "223.255.255.255",
                    "198.17.0.1",
                    "198.20.0.1",
                    "2606:4700::1111",
                    "2001:4860:4860::8888",
                    "::ffff:8.8.8.8",
                    "64:ff9b::808:808",
                    "2002:808:808::1",
                ][..],
            ),
            (
                Class::Own,
                &[
                    "127.0.0.1",
                    "127.255.255.254",
                    "10.0.0.1",
                    "10.255.255.255",
                    "172.16.0.1",
                    "172.31.255.255",
                    "192.168.1.1",
                    "100.64.0.1",
                    "100.127.255.255",
                    "100.100.100.200",
                    "::1",
                    "fc00::1",
                    "fdff::1",
                    "fd00:ec2::254",
                    "::ffff:127.0.0.1",
                    "::ffff:10.0.0.1",
                    "64:ff9b::a00:1",
                    "2002:a00:1::1",
                    "::ffff:0:c0a8:1",
                ],
            ),
            (
                Class::Special,
                &[
                    "0.0.0.0",
                    "0.1.2.3",
                    "169.254.169.254",
                    "169.254.0.1",
                    "224.0.0.1",
                    "239.255.255.255",
                    "240.0.0.1",
                    "255.255.255.255",
                    "192.0.0.1",
                    "192.0.2.1",
                    "198.18.0.1",
                    "198.51.100.7",
                    "203.0.113.7",
                    "192.88.99.1",
                    "::",
                    "fe80::1",
                    "febf::1",
                    "fec0::1",
                    "ff02::1",
                    "100::1",
                    "2001::1",
                    "2001:db8::1",
                    "64:ff9b:1::1",
                    "::ffff:169.254.169.254",
                    "64:ff9b::a9fe:a9fe",
                    "::7f00:1",
                    "2002:a9fe:a9fe::1",
                    "4000::1",
                ],
            ),
        ] {
            for address in addresses {
                assert_eq!(class(address.parse().unwrap()), class_of, "{address}");
            }
        }
    }
}
