//! A small HTTP/1.1 server for the demo's web: one listener on loopback, hosts told apart by the `Host` header.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use super::web::DemoWeb;

/// A request head longer than this ends its connection, bytes.
const MAX_HEAD: usize = 16 * 1024;

/// A port on loopback that is not served yet.
#[derive(Debug)]
pub(super) struct Door {
    listener: TcpListener,
    address: SocketAddr,
}

impl Door {
    /// Takes a free port.
    ///
    /// # Errors
    /// If loopback cannot be listened on.
    pub(super) fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Address and port.
    #[must_use]
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the web on threads of its own for as long as the process lives.
    pub(super) fn serve(self, web: DemoWeb) {
        let web = Arc::new(web);
        thread::spawn(move || {
            for stream in self.listener.incoming().flatten() {
                let web = Arc::clone(&web);
                // a client that goes away is no fault of the server
                thread::spawn(move || drop(converse(stream, &web)));
            }
        });
    }
}

/// Answers the requests of one connection until the client ends it.
fn converse(mut stream: TcpStream, web: &DemoWeb) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some(head) = read_head(&mut stream, &mut buffer)? {
        stream.write_all(&answer(&head, web))?;
    }
    Ok(())
}

/// The next request head without its closing empty line; `None` when the client is done or says too much.
fn read_head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<String>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = buffer.split_off(end + 4);
            let head = std::mem::replace(buffer, rest);
            return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
        }
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk)?;
        if read == 0 || buffer.len() > MAX_HEAD {
            return Ok(None);
        }
        buffer.extend(chunk.iter().take(read));
    }
}

fn answer(head: &str, web: &DemoWeb) -> Vec<u8> {
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or("/");
    let host = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("host"))
        .and_then(|(_, value)| web.host_of(value.trim()));
    let Some(host) = host else {
        return b"HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n".to_vec();
    };
    let page = web.page(host, path);
    let location = page
        .location
        .map_or_else(String::new, |to| format!("Location: {to}\r\n"));
    let head = format!(
        "HTTP/1.1 {} {}\r\nServer: demo\r\nContent-Type: {}\r\n{location}Content-Length: {}\r\n\r\n",
        page.status,
        reason(page.status),
        page.mime,
        page.body.len()
    );
    let mut bytes = head.into_bytes();
    bytes.extend(page.body);
    bytes
}

fn reason(status: u16) -> &'static str {
    match status {
        301 => "Moved Permanently",
        404 => "Not Found",
        _ => "OK",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_requests_share_a_connection_and_a_stranger_is_sent_away() {
        let door = Door::open().unwrap();
        let address = door.address();
        let web = DemoWeb::new(1, 3, address.port());
        door.serve(web.clone());
        let mut stream = TcpStream::connect(address).unwrap();
        for (host, path, first) in [
            (format!("site1.demo:{}", address.port()), "/", "HTTP/1.1 200 OK"),
            (
                format!("site1.demo:{}", address.port()),
                "/moved",
                "HTTP/1.1 301 Moved Permanently",
            ),
            ("elsewhere".to_owned(), "/", "HTTP/1.1 421 Misdirected Request"),
        ] {
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).unwrap();
            let text = String::from_utf8_lossy(&bytes[..read]);
            assert_eq!(text.lines().next(), Some(first));
        }
    }
}
