//! TLS of the host's own: certificate and key from files, read again when they have changed.
//!
//! Files that can't be used, half renewed say, leave the old certificate in force; that is told, and tried again.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::{SetupError, sha256};
use crate::config;

/// Renewals come weeks before they are needed.
const EVERY: Duration = Duration::from_secs(60);

pub(super) struct Tls {
    files: config::Tls,
    loaded: ArcSwap<Loaded>,
}

struct Loaded {
    acceptor: TlsAcceptor,
    certificate: Arc<[u8]>,
    digest: [u8; 32],
}

impl Tls {
    pub(super) fn load(files: &config::Tls) -> Result<Self, SetupError> {
        Ok(Self { files: files.clone(), loaded: ArcSwap::from_pointee(load(files)?) })
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        self.loaded.load().acceptor.clone()
    }

    /// What Telegram has to be given, as nobody has signed it.
    pub(super) fn own_certificate(&self) -> Option<Arc<[u8]>> {
        self.files.self_signed.then(|| self.loaded.load().certificate.clone())
    }

    /// Reads the files again and again. New connections get what is in them.
    pub(super) async fn keep_fresh(&self) {
        let mut refused = None;
        loop {
            tokio::time::sleep(EVERY).await;
            match load(&self.files) {
                Ok(new) if new.digest != self.loaded.load().digest => {
                    tracing::info!("the webhook has a new certificate");
                    self.loaded.store(Arc::new(new));
                    refused = None;
                }
                Ok(_) => refused = None,
                Err(error) => {
                    let error = error.to_string();
                    if refused.as_ref() != Some(&error) {
                        tracing::error!(error, "the webhook's new certificate can't be used; the old one serves on");
                    }
                    refused = Some(error);
                }
            }
        }
    }
}

fn load(files: &config::Tls) -> Result<Loaded, SetupError> {
    let wrong = |file: &std::path::Path, reason: String| SetupError::Tls { file: file.display().to_string(), reason };
    let read = |file: &std::path::Path| std::fs::read(file).map_err(|error| wrong(file, error.to_string()));
    let (certificate, key) = (read(&files.certificate)?, read(&files.key)?);
    let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| wrong(&files.certificate, format!("it is no PEM file: {error}")))?;
    if chain.is_empty() {
        return Err(wrong(&files.certificate, "there is no certificate in it".to_owned()));
    }
    // The error's text holds nothing of the key.
    let private = PrivateKeyDer::from_pem_slice(&key)
        .map_err(|_| wrong(&files.key, "there is no private key in it, in PEM and without a password".to_owned()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private));
    let mut config = config.map_err(|error| wrong(&files.certificate, error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let digest = sha256(&[certificate.as_slice(), &key].concat());
    Ok(Loaded { acceptor: TlsAcceptor::from(Arc::new(config)), certificate: certificate.into(), digest })
}
