//! WARC 1.1 files and their CDXJ index. Encoding is pure; writing goes through [`crate::disk::Disk`], called by the
//! ledger alone.

pub mod cdxj;
pub mod warc;
