//! Names to addresses, and the guard that keeps a crawl out of private networks.

use std::net::IpAddr;

/// A CIDR range such as `127.0.0.0/8` or `::1/128`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr(());

impl std::str::FromStr for Cidr {
    type Err = String;
    fn from_str(_text: &str) -> Result<Self, String> {
        todo!()
    }
}

/// Which addresses may be connected to: public ones, and what the user allowed by name.
#[derive(Debug, Clone, Default)]
pub struct AddressPolicy {
    /// Ranges from `--allow-address`.
    pub allow: Vec<Cidr>,
}

impl AddressPolicy {
    /// May this address be connected to? IPv4-mapped and other IPv6 forms that carry an IPv4 address are judged by it.
    #[must_use]
    pub fn allows(&self, _address: IpAddr) -> bool {
        todo!()
    }
}
