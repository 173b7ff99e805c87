//! WARC 1.1 files and their CDXJ index. Encoding is pure; writing goes through [`crate::disk::Disk`], called by the
//! ledger alone.
//!
//! [`warc`] says what stands in a record, [`head`] what of an HTTP head a record keeps, [`member`] packs a record as
//! one gzip member, [`identify`] looks at the payload; [`cdxj`] and [`sort`] make the index, [`naming`] the file
//! names; [`read`] walks a finished file member by member and trusts nothing that the others wrote;
//! [`verify`] holds files of any make against their formats;
//! [`pack`] makes one WACZ file of an archive.

pub mod cdxj;
pub mod head;
pub mod identify;
pub mod member;
pub mod naming;
pub mod pack;
pub mod read;
pub mod sort;
pub mod verify;
pub mod warc;
