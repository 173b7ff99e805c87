//! What of a body is kept in memory to be read, and where it is read.

use std::borrow::Cow;
use std::io::{self, Read as _};

use super::{EXTRACT_BYTES, Settings, page, path_of};
use crate::extract::sitemap::Gather;
use crate::extract::{self, Role, sitemap};
use crate::fetch::Response;
use crate::fetch::decode::{self, Decoded, Keep};
use crate::frontier::Path;
use crate::robots::MAX_ROBOTS_BYTES;
use crate::shard::{What, Work};

/// A body longer than this is read off the runtime's threads, bytes.
const LARGE_BODY: u64 = 256 * 1024;

/// A byte of a sitemap is so many times the work of one of a page: it may be packed, and holds nothing but addresses.
const SITEMAP_WORK: u64 = 32;

/// Text that is kept of what may be a sitemap, bytes: one more than is read, so that its reader knows of it.
#[expect(clippy::cast_possible_truncation, reason = "50 MiB fit")]
const SITEMAP_BYTES: usize = sitemap::MAX_BYTES as usize + 1;

/// Text that is kept of a robots.txt, bytes: one more than is read, so that its reader knows whether its last line is cut.
const ROBOTS_BYTES: usize = MAX_ROBOTS_BYTES + 1;

/// First bytes of a large sitemap that tell what it is.
const START_BYTES: usize = 2 * 1024;
/// Bytes of a large sitemap that are read at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// What is read of responses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// Only what is small.
    Small,
    /// Everything.
    Any,
}

/// The size of a body from which it is read elsewhere. A small sitemap may hold very many addresses.
pub(super) fn large(work: &Work) -> u64 {
    if path_of(work).is_some_and(Path::is_sitemap) {
        LARGE_BODY / SITEMAP_WORK
    } else {
        LARGE_BODY
    }
}

/// Text that is kept of a body, bytes at most. Sitemaps may be larger than pages.
pub(super) fn most(work: &Work, settings: &Settings) -> usize {
    match &work.what {
        What::Page { item, .. } => match page::role(&item.path, settings) {
            Role::Page | Role::Either => EXTRACT_BYTES,
            Role::Seed | Role::Sitemap => SITEMAP_BYTES,
        },
        What::Robots(_) | What::Address(_) => ROBOTS_BYTES,
    }
}

/// What there is to be read of a body.
pub(super) struct Text<'r> {
    pub(super) decoded: Decoded<'r>,
    /// The entries of a large sitemap, read in pieces: of its text the start alone is kept.
    pub(super) gathered: Option<Gather>,
}

impl<'r> From<Decoded<'r>> for Text<'r> {
    fn from(decoded: Decoded<'r>) -> Self {
        Self {
            decoded,
            gathered: None,
        }
    }
}

/// Undoes the codings; `None` if it is larger than that.
pub(super) fn decoded<'r>(
    work: &Work,
    response: &'r Response,
    settings: &Settings,
    size: Size,
) -> io::Result<Option<Text<'r>>> {
    let encodings: Vec<&[u8]> = response.header_all("content-encoding").collect();
    let cap = settings.max_decoded;
    if let Some(body) = response.body.in_memory()
        && let Some(small) = decode::small(&encodings, body, cap)
    {
        return Ok(Some(small.into()));
    }
    if size == Size::Small {
        return Ok(None);
    }
    let content_type = response.header("content-type");
    if let What::Page { item, .. } = &work.what
        && let Some(text) = in_pieces(page::role(&item.path, settings), &encodings, response, settings)?
    {
        return Ok(Some(text));
    }
    let any = match &work.what {
        What::Page { item, .. } => matches!(page::role(&item.path, settings), Role::Seed | Role::Sitemap),
        What::Robots(_) | What::Address(_) => true,
    };
    let keep = Keep {
        most: most(work, settings),
        wants: &|start| any || extract::is_read(content_type, start),
    };
    let large = decode::large(&encodings, &response.body, cap, keep, &settings.spool)?;
    Ok(Some(large.into()))
}

/// Reads a large body that is nothing but a sitemap, without ever holding it.
fn in_pieces(
    role: Role,
    encodings: &[&[u8]],
    response: &Response,
    settings: &Settings,
) -> io::Result<Option<Text<'static>>> {
    if matches!(role, Role::Page | Role::Either) {
        return Ok(None);
    }
    let (body, fault) = decode::whole(encodings, &response.body, settings.max_decoded, &settings.spool)?;
    let start = body.start(START_BYTES)?.into_owned();
    let content_type = response.header("content-type");
    let Some(mut gather) = extract::listing_in_pieces(role, response.status, content_type, &start) else {
        return Ok(None);
    };
    let len = body.len().min(settings.max_decoded);
    let mut bytes = body.reader().take(len);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = bytes.read(&mut piece)?;
        if read == 0 || !gather.feed(piece.get(..read).unwrap_or_default()) {
            break;
        }
    }
    let decoded = Decoded {
        bytes: Cow::Owned(start),
        len,
        cut: false,
        fault,
    };
    Ok(Some(Text {
        decoded,
        gathered: Some(gather),
    }))
}
