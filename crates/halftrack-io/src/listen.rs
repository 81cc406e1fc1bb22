//! Sockets to listen on. At `[::]` they serve IPv6 and IPv4, whatever the system's default is. Does not know
//! for whom.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// What the system keeps for a peer that does not read. Its own default grows to megabytes, and all of that
/// would be snapshots that nobody wants any more; a page of some hundred KiB still comes in a few round
/// trips.
const SEND_BUFFER: usize = 128 * 1_024;
/// Bytes that the system keeps of a peer before they are read and counted. Its own default grows to megabytes per
/// connection; a peer may send 128 KiB a second.
const RECEIVE_BUFFER: usize = 64 * 1_024;
/// Connections that the system has made and the server has not taken yet.
const BACKLOG: i32 = 1_024;

pub(crate) fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = open(address, Type::DGRAM, Protocol::UDP)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

pub(crate) fn tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = open(address, Type::STREAM, Protocol::TCP)?;
    // Or a server that is restarted waits for the last packets of its predecessor. Elsewhere it means
    // something else.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    // Connections inherit both.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

fn open(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockRef;
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn connections_inherit_how_much_is_kept_for_them() {
        let listener = tcp(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let accepted = SockRef::from(&accepted);
        let (send, receive) = (accepted.send_buffer_size().unwrap(), accepted.recv_buffer_size().unwrap());
        // Linux doubles the size for its own bookkeeping.
        assert!([SEND_BUFFER, 2 * SEND_BUFFER].contains(&send), "{send}");
        assert!([RECEIVE_BUFFER, 2 * RECEIVE_BUFFER].contains(&receive), "{receive}");
    }
}
