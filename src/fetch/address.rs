//! Which addresses a crawl may connect to.
//!
//! A page may name any address, and a name may resolve to any address. What is not part of the public Internet is
//! refused by default (IANA special-purpose registries, RFC 6890 and its updates), so that no page can make the
//! crawler talk to the network it runs in: routers, metadata services, databases on loopback.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A CIDR range such as `127.0.0.0/8` or `::1/128`; an address alone is a range of one. Bits below the prefix are
/// ignored: `10.1.2.3/8` is `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// Every IPv4 address.
    pub const ALL_V4: Self = Self::v4(0, 0, 0, 0, 0);
    /// Every IPv6 address.
    pub const ALL_V6: Self = Self::v6(0, 0, 0);

    const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Self {
        Self {
            network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix,
        }
    }

    const fn v6(first: u16, second: u16, prefix: u8) -> Self {
        Self {
            network: IpAddr::V6(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0)),
            prefix,
        }
    }

    /// Is the address in the range? An IPv4 range holds no IPv6 address, and the other way round.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

impl std::str::FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an address range such as 127.0.0.0/8 or ::1/128");
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address = address
            .strip_prefix('[')
            .and_then(|a| a.strip_suffix(']'))
            .unwrap_or(address);
        let network: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if network.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| wrong())?,
            Some(_) => return Err(wrong()),
            None => bits,
        };
        if prefix > bits {
            return Err(format!(
                "{text:?}: an IPv{} prefix has at most {bits} bits",
                if bits == 32 { 4 } else { 6 }
            ));
        }
        Ok(Self { network, prefix })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

/// IPv4 ranges that are not on the public Internet.
const REFUSED_V4: [Cidr; 16] = [
    Cidr::v4(0, 0, 0, 0, 8),        // this network (RFC 791)
    Cidr::v4(10, 0, 0, 0, 8),       // private use (RFC 1918)
    Cidr::v4(100, 64, 0, 0, 10),    // shared space of carriers (RFC 6598)
    Cidr::v4(127, 0, 0, 0, 8),      // loopback (RFC 1122)
    Cidr::v4(169, 254, 0, 0, 16),   // link-local, metadata services (RFC 3927)
    Cidr::v4(172, 16, 0, 0, 12),    // private use
    Cidr::v4(192, 0, 0, 0, 24),     // protocol assignments (RFC 6890)
    Cidr::v4(192, 0, 2, 0, 24),     // documentation (RFC 5737)
    Cidr::v4(192, 88, 99, 0, 24),   // 6to4 relays, withdrawn (RFC 7526)
    Cidr::v4(192, 168, 0, 0, 16),   // private use
    Cidr::v4(198, 18, 0, 0, 15),    // benchmarks (RFC 2544)
    Cidr::v4(198, 51, 100, 0, 24),  // documentation
    Cidr::v4(203, 0, 113, 0, 24),   // documentation
    Cidr::v4(224, 0, 0, 0, 4),      // multicast (RFC 5771)
    Cidr::v4(240, 0, 0, 0, 4),      // reserved, with the limited broadcast address (RFC 1112, RFC 8190)
    Cidr::v4(168, 63, 129, 16, 32), // a cloud's own metadata and name service on a public number
];

/// The only part of IPv6 from which public addresses are given out (RFC 4291 section 2.4). Everything else is
/// refused with it: `::`, `::1`, IPv4-compatible, `fc00::/7`, `fe80::/10`, `fec0::/10`, `ff00::/8`, `100::/64`,
/// `64:ff9b:1::/48`.
const PUBLIC_V6: Cidr = Cidr::v6(0x2000, 0, 3);

/// Ranges inside [`PUBLIC_V6`] that are not on the public Internet.
const REFUSED_V6: [Cidr; 4] = [
    Cidr::v6(0x2001, 0, 23), // protocol assignments with Teredo, benchmarks, ORCHID (RFC 2928, RFC 4380)
    Cidr::v6(0x2001, 0xdb8, 32), // documentation (RFC 3849)
    Cidr::v6(0x3fff, 0, 20), // documentation (RFC 9637)
    Cidr::v6(0x3ffe, 0, 16), // the old test network, returned (RFC 3701)
];

/// Translation of IPv4 into IPv6 by well-known prefix (RFC 6052): the last 32 bits are the IPv4 address.
const NAT64: Cidr = Cidr::v6(0x64, 0xff9b, 96);

/// 6to4 (RFC 3056): bits 16 to 47 are the IPv4 address.
const SIX_TO_FOUR: Cidr = Cidr::v6(0x2002, 0, 16);

/// Which addresses may be connected to: public ones, and what the user allowed by name.
#[derive(Debug, Clone, Default)]
pub struct AddressPolicy {
    /// Ranges from `--allow-address`.
    pub allow: Vec<Cidr>,
}

impl AddressPolicy {
    /// May this address be connected to? IPv4-mapped and other IPv6 forms that carry an IPv4 address (NAT64, 6to4)
    /// are judged by it.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        if self.allow.iter().any(|range| range.contains(address)) {
            return true;
        }
        match address {
            IpAddr::V4(_) => !REFUSED_V4.iter().any(|range| range.contains(address)),
            IpAddr::V6(v6) => match carried(v6) {
                Some(v4) => self.allows(IpAddr::V4(v4)),
                None => PUBLIC_V6.contains(address) && !REFUSED_V6.iter().any(|range| range.contains(address)),
            },
        }
    }
}

impl AddressPolicy {
    /// Did the user allow any part of the ranges for private use? Then a name that is known to lead there may be asked
    /// for where nobody here sees its address.
    #[must_use]
    pub fn allows_private(&self) -> bool {
        let overlap = |a: &Cidr, b: &Cidr| a.contains(b.network) || b.contains(a.network);
        self.allow
            .iter()
            .any(|range| PRIVATE_USE.iter().any(|private| overlap(range, private)))
    }
}

/// The ranges that networks number themselves from (RFC 1918, RFC 4193).
const PRIVATE_USE: [Cidr; 4] = [
    Cidr::v4(10, 0, 0, 0, 8),
    Cidr::v4(172, 16, 0, 0, 12),
    Cidr::v4(192, 168, 0, 0, 16),
    Cidr::v6(0xfc00, 0, 7),
];

/// The IPv4 address that a packet to this IPv6 address ends up at, if its form says so.
fn carried(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let last = || Ipv4Addr::from_bits(u32::try_from(v6.to_bits() & u128::from(u32::MAX)).unwrap_or(0));
    if let Some(mapped) = v6.to_ipv4_mapped() {
        return Some(mapped);
    }
    if NAT64.contains(IpAddr::V6(v6)) {
        return Some(last());
    }
    if SIX_TO_FOUR.contains(IpAddr::V6(v6)) {
        let [_, high, low, ..] = v6.segments();
        return Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn allows(text: &str) -> bool {
        AddressPolicy::default().allows(text.parse().unwrap())
    }

    #[test]
    fn any_part_of_a_private_range_allows_private_names() {
        let allows = |range: &str| {
            let allow = vec![range.parse().unwrap()];
            AddressPolicy { allow }.allows_private()
        };
        for range in [
            "10.0.0.0/8",
            "192.168.7.0/24",
            "0.0.0.0/0",
            "172.20.1.1",
            "fd12::/16",
            "::/0",
        ] {
            assert!(allows(range), "{range}");
        }
        for range in ["127.0.0.0/8", "::1/128", "11.0.0.0/8", "169.254.169.254"] {
            assert!(!allows(range), "{range}");
        }
    }

    #[test]
    fn public_addresses_are_allowed() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "2001:200::1",
            "::ffff:8.8.8.8",
            "2002:808:808::",
            "64:ff9b::8.8.8.8",
        ] {
            assert!(allows(address), "{address} is public");
        }
    }

    #[test]
    fn what_is_not_public_is_refused() {
        for address in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.1",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.170",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.7",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.0",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::5",
            "2002:a9fe:a9fe::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!allows(address), "{address} is not public");
        }
    }

    #[test]
    fn what_the_user_allows_is_allowed_in_every_form_that_carries_it() {
        let policy = AddressPolicy {
            allow: vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
        };
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "1.1.1.1"] {
            assert!(policy.allows(address.parse().unwrap()), "{address}");
        }
        for address in ["10.0.0.1", "::2", "::ffff:10.0.0.1"] {
            assert!(!policy.allows(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn ranges_are_read_and_written() {
        for (text, written) in [
            ("127.0.0.0/8", "127.0.0.0/8"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::1/128", "::1/128"),
            ("[::1]", "::1/128"),
            ("fd00::/8", "fd00::/8"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(text.parse::<Cidr>().unwrap().to_string(), written);
        }
        for text in [
            "",
            "/",
            "/8",
            "127.0.0.1/",
            "127.0.0.1/33",
            "::1/129",
            "127.1/8",
            "host/8",
            "1.2.3.4/+8",
            "1.2.3.4/-1",
        ] {
            assert!(text.parse::<Cidr>().is_err(), "{text}");
        }
        let all: Cidr = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("255.1.2.3".parse().unwrap()) && !all.contains("::1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn a_range_holds_what_shares_its_prefix(network: u32, address: u32, prefix in 0u8..=32) {
            let cidr: Cidr = format!("{}/{prefix}", Ipv4Addr::from_bits(network)).parse().unwrap();
            let same = (0..u32::from(prefix)).all(|bit| (network ^ address) >> (31 - bit) & 1 == 0);
            prop_assert_eq!(cidr.contains(IpAddr::V4(Ipv4Addr::from_bits(address))), same);
        }

        #[test]
        fn any_text_gives_an_outcome(text in ".{0,40}") {
            let _ = text.parse::<Cidr>();
        }
    }
}
