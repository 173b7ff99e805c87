//! What a playlist plays: HLS (`m3u8`, RFC 8216) and older `m3u`. DASH is in `dash`.

/// The types that playlists come under.
const TYPES: [&str; 5] = [
    "application/vnd.apple.mpegurl",
    "application/x-mpegurl",
    "application/mpegurl",
    "audio/mpegurl",
    "audio/x-mpegurl",
];

/// Whether a body is a playlist: by its type, or by its first line where the type says little.
pub(super) fn is_one(essence: &str, body: &[u8]) -> bool {
    let vague = matches!(essence, "text/plain" | "application/octet-stream");
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    TYPES.contains(&essence) || vague && text.starts_with(b"#EXTM3U")
}

/// Calls `found` with each address: segments and other playlists (the lines that are no tags), keys, maps, renditions
/// (`URI` attributes of tags).
pub(super) fn scan<'a>(text: &'a str, mut found: impl FnMut(&'a str)) {
    for line in text.lines().map(str::trim) {
        if let Some(tag) = line.strip_prefix('#') {
            if tag.starts_with("EXT") {
                attributes(tag, &mut found);
            }
        } else if !line.is_empty() && !line.contains(['<', '>']) {
            found(line);
        }
    }
}

/// The quoted values of attributes named `URI`, or whose name ends so.
fn attributes<'a>(tag: &'a str, found: &mut impl FnMut(&'a str)) {
    let mut rest = tag;
    while let Some((before, value)) = rest.split_once("=\"") {
        let Some((value, after)) = value.split_once('"') else {
            return;
        };
        let name = before.rsplit([':', ',']).next().unwrap_or_default();
        if name.trim().ends_with("URI") && !value.is_empty() {
            found(value);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let mut words = Vec::new();
        scan(text, |url| words.push(url));
        words.join(" ")
    }

    #[test]
    fn segments_keys_and_renditions_are_found() {
        let text = "#EXTM3U\r\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a,URI=b\",NAME=\"x\",URI=\"audio.m3u8\"\n\
            #EXT-X-STREAM-INF:BANDWIDTH=1280000,CODECS=\"avc1,mp4a\"\nlow/v.m3u8?x=1\n\
            #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=86000,URI=\"iframe.m3u8\"\n#EXT-X-KEY:METHOD=AES-128,URI=\"k.bin\",IV=0x1\n\
            #EXT-X-MAP:URI=\"init.mp4\"\n#EXTINF:9.0, \"a title\"\n  seg 1.ts \n# a comment URI=\"no\"\n\n#EXT-X-ENDLIST";
        assert_eq!(
            words(text),
            "audio.m3u8 low/v.m3u8?x=1 iframe.m3u8 k.bin init.mp4 seg 1.ts"
        );
        assert_eq!(words("#EXT-X-KEY:URI=\"open"), "");
        assert_eq!(words("a.mp3\nhttp://h/b.mp3"), "a.mp3 http://h/b.mp3");
        assert_eq!(words("<html>\n<p>no playlist"), "");
    }

    #[test]
    fn a_playlist_is_told_by_type_or_first_line() {
        assert!(is_one("application/vnd.apple.mpegurl", b""));
        assert!(is_one("text/plain", b"\xef\xbb\xbf#EXTM3U\n"));
        assert!(!is_one("text/plain", b"# EXTM3U"));
        assert!(!is_one("text/html", b"#EXTM3U"));
    }
}
