//! What the commands do: one file each.
pub mod filter;
