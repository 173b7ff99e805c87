//! The signature of a WACZ file: does it fit what it is said to sign, and did the certificate of a domain lead to a root
//! that browsers know, on the day that is said? That day is not judged: the time stamp beside it (RFC 3161) is not read.

use std::time::Duration;

use data_encoding::BASE64;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use serde_json::Value;
use webpki::{EndEntityCert, KeyUsage, RawPublicKeyEntity};

/// The algorithms that are known: ECDSA over P-256 and P-384, RSA, Ed25519.
const ALGORITHMS: &[&dyn rustls_pki_types::SignatureVerificationAlgorithm] = &[
    webpki::ring::ECDSA_P256_SHA256,
    webpki::ring::ECDSA_P256_SHA384,
    webpki::ring::ECDSA_P384_SHA256,
    webpki::ring::ECDSA_P384_SHA384,
    webpki::ring::RSA_PKCS1_2048_8192_SHA256,
    webpki::ring::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
    webpki::ring::ED25519,
];

/// Judges `signedData` of datapackage-digest.json.
pub(super) fn check(signed: &Value) -> Result<(), String> {
    let text = |name: &str| signed.get(name).and_then(Value::as_str);
    let (Some(hash), Some(signature)) = (text("hash"), text("signature")) else {
        return Err("signedData has no hash or no signature".to_owned());
    };
    let signature = BASE64
        .decode(signature.as_bytes())
        .map_err(|_| "the signature is not base64".to_owned())?;
    let fits = if let Some(certificates) = text("domainCert") {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates.as_bytes()).collect();
        let chain = chain.map_err(|error| format!("domainCert is no list of certificates: {error}"))?;
        let (first, above) = chain.split_first().ok_or("domainCert is empty")?;
        let own = EndEntityCert::try_from(first).map_err(|error| format!("domainCert cannot be used: {error}"))?;
        let created = text("created").and_then(|text| text.parse::<jiff::Timestamp>().ok());
        let created = created.ok_or("signedData does not say when it was created")?;
        let seconds = u64::try_from(created.as_second()).unwrap_or(0);
        own.verify_for_usage(
            webpki::ALL_VERIFICATION_ALGS,
            webpki_roots::TLS_SERVER_ROOTS,
            above,
            UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
            KeyUsage::server_auth(),
            None,
            None,
        )
        .map_err(|error| format!("domainCert leads to no known root on that day: {error}"))?;
        let domain = text("domain").and_then(|name| ServerName::try_from(name).ok());
        let domain = domain.ok_or("signedData names no domain")?;
        own.verify_is_valid_for_subject_name(&domain)
            .map_err(|error| format!("domainCert is not of the domain: {error}"))?;
        ALGORITHMS
            .iter()
            .any(|algorithm| own.verify_signature(*algorithm, hash.as_bytes(), &signature).is_ok())
    } else if let Some(key) = text("publicKey") {
        let key = BASE64
            .decode(key.as_bytes())
            .map_err(|_| "publicKey is not base64".to_owned())?;
        let key = SubjectPublicKeyInfoDer::from(key);
        let own = RawPublicKeyEntity::try_from(&key).map_err(|error| format!("publicKey cannot be used: {error}"))?;
        let der = ALGORITHMS
            .iter()
            .any(|algorithm| own.verify_signature(*algorithm, hash.as_bytes(), &signature).is_ok());
        der || as_der(&signature).is_some_and(|signature| {
            ALGORITHMS
                .iter()
                .any(|algorithm| own.verify_signature(*algorithm, hash.as_bytes(), &signature).is_ok())
        })
    } else {
        return Err("signedData has neither domainCert nor publicKey".to_owned());
    };
    if fits {
        Ok(())
    } else {
        Err("the signature does not fit".to_owned())
    }
}

/// A signature of two numbers side by side, as browsers make it (IEEE P1363), in the form of certificates.
fn as_der(signature: &[u8]) -> Option<Vec<u8>> {
    let number = |bytes: &[u8]| {
        let start = bytes
            .iter()
            .position(|byte| *byte != 0)
            .unwrap_or(bytes.len().saturating_sub(1));
        let bytes = bytes.get(start..).unwrap_or_default();
        let pad = usize::from(bytes.first().is_some_and(|byte| byte & 0x80 != 0));
        let mut out = vec![2, u8::try_from(bytes.len() + pad).ok()?];
        out.extend(std::iter::repeat_n(0, pad));
        out.extend_from_slice(bytes);
        Some(out)
    };
    if !matches!(signature.len(), 64 | 96) {
        return None;
    }
    let (r, s) = signature.split_at_checked(signature.len() / 2)?;
    let both = [number(r)?, number(s)?].concat();
    let mut out = vec![0x30, u8::try_from(both.len()).ok().filter(|len| *len < 128)?];
    out.extend(both);
    Some(out)
}
