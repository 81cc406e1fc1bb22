//! What can go wrong between a program and its network, and what to do about it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use halftrack::ConfigError;
use halftrack::session::{DisconnectReason, SessionState};

use crate::certificate::CertificateHash;

/// An error of a library below, which is not part of this crate's promises.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why something did not begin, or did not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IoError {
    /// Another program has the port.
    #[error("{address} is in use: stop the program that has it, or choose another port")]
    AddressInUse {
        /// Where it was to be.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: choose an address of this machine")]
    Bind {
        /// Where it was to be.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// Links need a runtime to run on.
    #[error("there is no tokio runtime here: call this inside one, with its IO and time drivers enabled")]
    NoRuntime,
    /// The system gives no more threads, or no runtime.
    #[error("the system gave no thread: free some, or raise the limit of the process")]
    Thread(#[source] io::Error),
    /// The system gives no random bytes.
    #[error(
        "the system gave no random bytes: a room needs some for its secrets; check its source of randomness"
    )]
    NoRandomness,
    /// A file that holds a certificate or a key.
    #[error("cannot read {}: check the path and who may read it", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that cannot be written.
    #[error("cannot write {}: check that the folder is there and may be written to", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file without what it should hold.
    #[error("{} holds no {what} in PEM form: check that it is the right file", path.display())]
    Pem {
        /// Which.
        path: PathBuf,
        /// A certificate, or a private key.
        what: &'static str,
    },
    /// A certificate that cannot be used, or cannot be made.
    #[error("the certificate cannot be used: {0}; check that certificate and key belong together")]
    Certificate(#[source] Cause),
    /// A certificate that would live too long for a browser, or not at all.
    #[error("a self-signed certificate lives from 1 hour to 14 days: browsers refuse it otherwise")]
    Validity,
    /// 64 hexadecimal digits are a hash.
    #[error("a certificate hash is 64 hexadecimal digits (SHA-256 of the certificate in DER form)")]
    Hash,
    /// A name that no room can have.
    #[error("a room's name has 1 to 32 of the characters a-z, A-Z, 0-9, - and _")]
    RoomName,
    /// An address that cannot be understood.
    #[error(
        "write the server's address as quic://HOST:PORT, ws://HOST:PORT or either with /room/NAME behind it"
    )]
    Url,
    /// The host is not known.
    #[error("the host is not known: check its name and the network")]
    UnknownHost(#[source] io::Error),
    /// The server has another certificate than the one that is trusted.
    #[error(
        "the server's certificate has the hash {found}, which is not trusted: ask its operator for the new one"
    )]
    WrongCertificate {
        /// The hash of the one it has.
        found: CertificateHash,
    },
    /// The two ends cannot agree on how to talk.
    #[error("the handshake failed: {0}; check that the certificate is trusted and made for this host")]
    Handshake(#[source] Cause),
    /// No answer.
    #[error("nobody answers at {address}: check that the server runs, and that no firewall is in between")]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// What the network said.
        source: Cause,
    },
    /// The server is there, and does not want this connection.
    #[error(
        "the server at {address} lets nobody more in from here: it is full, busy, or this address is banned"
    )]
    Refused {
        /// Where.
        address: SocketAddr,
    },
    /// Neither error nor answer.
    #[error("connecting took too long: check that the server runs, and that no firewall is in between")]
    Timeout,
    /// The session is over.
    #[error("the session is over: {0}")]
    Over(SessionState),
    /// The server closed the connection, and said why.
    #[error("the server closed the connection: {0}")]
    Closed(DisconnectReason),
    /// What cannot be the origin of a page.
    #[error("write an origin as https://HOST or http://HOST:PORT, without a path")]
    Origin,
    /// The list is full.
    #[error("too many addresses are banned: lift some bans, or use a firewall")]
    TooManyBans,
    /// The room has ended.
    #[error("the room has ended: make a new one")]
    RoomEnded,
    /// A config of the core.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl IoError {
    /// What listening on `address` came to.
    pub(crate) fn listening(address: SocketAddr, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::AddrInUse {
            Self::AddressInUse { address }
        } else {
            Self::Bind { address, source }
        }
    }

    /// Whether trying again is pointless.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::WrongCertificate { .. } | Self::Url | Self::File { .. } | Self::Pem { .. })
    }
}
