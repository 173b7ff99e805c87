//! TLS: the public roots of the Web, versions 1.2 and 1.3, and words for what goes wrong.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, CipherSuite, ClientConfig, DigitallySignedStruct, Error, PeerIncompatible,
    ProtocolVersion, RootCertStore, SignatureScheme,
};

/// The client's side of TLS. `protocols` are offered by ALPN; if `insecure`, any certificate will do.
///
/// # Errors
/// The library cannot be set up.
pub(super) fn config(protocols: &[&[u8]], insecure: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS cannot be set up: {e}"))?;
    let mut config = if insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
            .with_no_client_auth()
    } else {
        let roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// Believes every certificate (`--insecure-tls`).
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// What went wrong, in words for people; details follow in the library's own.
pub(super) fn words(error: &Error) -> String {
    let reason = match error {
        Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the certificate has expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the certificate is not valid yet"
            }
            CertificateError::UnknownIssuer => "unknown issuer: nobody we trust signed the certificate",
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "name mismatch: the certificate is for another host"
            }
            CertificateError::Revoked => "the certificate was revoked",
            _ => "bad certificate",
        },
        Error::AlertReceived(AlertDescription::ProtocolVersion)
        | Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => "protocol version: the server speaks neither TLS 1.2 nor 1.3",
        Error::AlertReceived(AlertDescription::HandshakeFailure) | Error::PeerIncompatible(_) => {
            "handshake failure: nothing in common with the server"
        }
        Error::AlertReceived(AlertDescription::UnrecognisedName) => "name mismatch: the server does not know the host",
        Error::AlertReceived(_) => "handshake failure: the server gave up",
        Error::InvalidMessage(_) => "what came is not TLS",
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } | Error::PeerMisbehaved(_) => {
            "handshake failure: the server does not follow the protocol"
        }
        _ => "handshake failure",
    };
    let detail = error.to_string().replace(['\r', '\n'], " ");
    format!("{reason} ({detail})")
}

/// `WARC-Protocol` of a version of TLS.
pub(super) fn version(version: Option<ProtocolVersion>) -> Option<&'static str> {
    match version? {
        ProtocolVersion::TLSv1_2 => Some("tls/1.2"),
        ProtocolVersion::TLSv1_3 => Some("tls/1.3"),
        _ => None,
    }
}

/// The name of a cipher suite in IANA's registry.
pub(super) fn cipher(suite: CipherSuite) -> Option<&'static str> {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => Some("TLS_AES_128_GCM_SHA256"),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => Some("TLS_AES_256_GCM_SHA384"),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some("TLS_CHACHA20_POLY1305_SHA256"),
        other => other.as_str(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_words() {
        for (error, reason) in [
            (Error::InvalidCertificate(CertificateError::Expired), "expired"),
            (
                Error::InvalidCertificate(CertificateError::NotValidYet),
                "not valid yet",
            ),
            (
                Error::InvalidCertificate(CertificateError::UnknownIssuer),
                "unknown issuer",
            ),
            (
                Error::InvalidCertificate(CertificateError::NotValidForName),
                "name mismatch",
            ),
            (
                Error::InvalidCertificate(CertificateError::BadEncoding),
                "bad certificate",
            ),
            (
                Error::AlertReceived(AlertDescription::ProtocolVersion),
                "protocol version",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13),
                "protocol version",
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                "handshake failure",
            ),
            (
                Error::AlertReceived(AlertDescription::InternalError),
                "handshake failure",
            ),
            (
                Error::AlertReceived(AlertDescription::UnrecognisedName),
                "name mismatch",
            ),
            (Error::General("x".to_owned()), "handshake failure"),
        ] {
            assert!(words(&error).contains(reason), "{error:?}: {}", words(&error));
        }
    }

    #[test]
    fn suites_have_the_names_of_the_registry() {
        let provider = rustls::crypto::ring::default_provider();
        for suite in provider.cipher_suites {
            let name = cipher(suite.suite()).unwrap();
            assert!(name.starts_with("TLS_"), "{name}");
        }
        assert_eq!(version(Some(ProtocolVersion::TLSv1_3)), Some("tls/1.3"));
        assert_eq!(version(Some(ProtocolVersion::TLSv1_0)), None);
    }
}
