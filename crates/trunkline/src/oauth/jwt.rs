//! JSON Web Tokens that this client signs: assertions of a private key (RFC 7523) and proofs of
//! possession (DPoP, RFC 9449).
//!
//! Written on `ring`, which rustls brings: the crate `jsonwebtoken` adds 20 crates, and a second
//! cryptography library that takes two minutes to build.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::Method;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::rsa::KeyPair as RsaKeyPair;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use url::Url;

use crate::config::Secret;
use crate::error::{Error, ErrorKind};

/// Lifetime of an assertion, in seconds: enough for one request, on clocks that differ a little.
const ASSERTION_SECONDS: u64 = 60;

/// A private key that signs tokens.
pub(super) enum SigningKey {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl SigningKey {
    /// Reads a private key in PEM.
    pub(super) fn from_pem(pem: &Secret) -> Result<Self, Error> {
        let key = PrivateKeyDer::from_pem_slice(pem.expose().as_bytes());
        let key = key.map_err(|_| unusable("`privateKey` is not a private key in PEM"))?;
        let random = SystemRandom::new();
        let read = match &key {
            PrivateKeyDer::Pkcs8(der) => Self::from_pkcs8(der.secret_pkcs8_der(), &random),
            PrivateKeyDer::Pkcs1(der) => {
                let key = RsaKeyPair::from_der(der.secret_pkcs1_der()).ok();
                key.map(|key| Self::Rsa(Box::new(key)))
            }
            _ => None,
        };
        read.ok_or_else(|| {
            unusable("`privateKey` is a key of a kind that is not supported").with_hint(
                "use RSA, P-256, P-384 or Ed25519 in PKCS#8: \
                 `openssl pkcs8 -topk8 -nocrypt -in old.pem -out new.pem`",
            )
        })
    }

    fn from_pkcs8(der: &[u8], random: &SystemRandom) -> Option<Self> {
        let curve = |algorithm| EcdsaKeyPair::from_pkcs8(algorithm, der, random).ok();
        let p256 = || curve(&ECDSA_P256_SHA256_FIXED_SIGNING).map(Self::P256);
        let p384 = || curve(&ECDSA_P384_SHA384_FIXED_SIGNING).map(Self::P384);
        let edwards = || Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok().map(Self::Ed25519);
        let rsa = || RsaKeyPair::from_pkcs8(der).ok().map(|key| Self::Rsa(Box::new(key)));
        p256().or_else(p384).or_else(edwards).or_else(rsa)
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::P256(_) => "ES256",
            Self::P384(_) => "ES384",
            Self::Ed25519(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
        }
    }

    fn signature(&self, text: &[u8]) -> Result<Vec<u8>, Error> {
        let random = SystemRandom::new();
        let signed = match self {
            Self::P256(key) | Self::P384(key) => {
                key.sign(&random, text).map(|it| it.as_ref().to_vec())
            }
            Self::Ed25519(key) => Ok(key.sign(text).as_ref().to_vec()),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).map(|()| signature)
            }
        };
        signed.map_err(|_| unusable("a token could not be signed"))
    }

    fn sign(&self, header: &Value, claims: &Value) -> Result<Secret, Error> {
        let text = format!("{}.{}", encoded(header), encoded(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.signature(text.as_bytes())?);
        Ok(Secret::new(format!("{text}.{signature}")))
    }

    /// The assertion that authenticates a client (`private_key_jwt`). The audience is the issuer.
    pub(super) fn client_assertion(
        &self,
        client_id: &str,
        key_id: Option<&str>,
        audience: &str,
    ) -> Result<Secret, Error> {
        let mut header = json!({ "typ": "JWT", "alg": self.algorithm() });
        if let Some(key_id) = key_id {
            header["kid"] = key_id.into();
        }
        let now = now();
        let claims = json!({
            "iss": client_id,
            "sub": client_id,
            "aud": audience,
            "jti": random_text()?,
            "iat": now,
            "exp": now + ASSERTION_SECONDS,
        });
        self.sign(&header, &claims)
    }
}

/// The key that DPoP tokens are bound to.
pub(crate) struct DpopKey {
    key: SigningKey,
    /// The key as it is stored.
    pkcs8: Secret,
    public: Value,
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DpopKey")
    }
}

/// A request that a proof is made for.
pub(crate) struct ProofRequest<'a> {
    pub(crate) method: &'a Method,
    pub(crate) url: &'a Url,
    /// The token that is sent along, at a resource.
    pub(crate) token: Option<&'a Secret>,
    pub(crate) nonce: Option<&'a str>,
}

impl DpopKey {
    /// Creates a key.
    pub(super) fn generate() -> Result<Self, Error> {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let pkcs8 = pkcs8.map_err(|_| unusable("no key could be created"))?;
        Self::from_der(pkcs8.as_ref())
    }

    /// Reads a stored key.
    pub(super) fn from_stored(pkcs8: &Secret) -> Result<Self, Error> {
        let der = URL_SAFE_NO_PAD.decode(pkcs8.expose());
        Self::from_der(&der.map_err(|_| unusable("the stored key cannot be read"))?)
    }

    fn from_der(der: &[u8]) -> Result<Self, Error> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, der, &SystemRandom::new());
        let key = key.map_err(|_| unusable("the stored key cannot be read"))?;
        // The uncompressed form: a byte that says so, and both coordinates.
        let point = key.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at_checked(point.len() / 2).unwrap_or_default();
        let coordinate = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let public = json!({ "kty": "EC", "crv": "P-256", "x": coordinate(x), "y": coordinate(y) });
        let pkcs8 = Secret::new(URL_SAFE_NO_PAD.encode(der));
        Ok(Self { key: SigningKey::P256(key), pkcs8, public })
    }

    /// The key as it is stored.
    pub(super) fn stored(&self) -> &Secret {
        &self.pkcs8
    }

    /// A proof for one request; every proof is used once.
    pub(crate) fn proof(&self, request: &ProofRequest<'_>) -> Result<Secret, Error> {
        let header = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": self.public });
        let mut url = request.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        let mut claims = json!({
            "jti": random_text()?,
            "htm": request.method.as_str(),
            "htu": url.as_str(),
            "iat": now(),
        });
        if let Some(token) = request.token {
            let hash = digest(&SHA256, token.expose().as_bytes());
            claims["ath"] = URL_SAFE_NO_PAD.encode(hash).into();
        }
        if let Some(nonce) = request.nonce {
            claims["nonce"] = nonce.into();
        }
        self.key.sign(&header, &claims)
    }
}

/// A text of 256 random bits, for states, verifiers and IDs of tokens.
pub(super) fn random_text() -> Result<String, Error> {
    let mut bytes = [0_u8; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| unusable("the system has no random numbers"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The S256 challenge of a PKCE verifier.
pub(super) fn pkce_challenge(verifier: &Secret) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.expose().as_bytes()))
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn unusable(message: &str) -> Error {
    Error::new(ErrorKind::UnusableValue, message)
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    fn part(token: &Secret, index: usize) -> Value {
        let part = token.expose().split('.').nth(index).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    /// RFC 7636, appendix B.
    #[test]
    fn challenge_of_the_example_is_that_of_the_rfc() {
        let verifier = Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(pkce_challenge(&verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn proof_is_signed_by_the_key_that_it_names() {
        let key = DpopKey::generate().unwrap();
        let url = Url::parse("https://a.example/mcp?x=1#y").unwrap();
        let token = Secret::new("token");
        let request = ProofRequest {
            method: &Method::POST,
            url: &url,
            token: Some(&token),
            nonce: Some("n"),
        };
        let proof = key.proof(&request).unwrap();
        let (header, claims) = (part(&proof, 0), part(&proof, 1));
        assert_eq!(claims["htu"], "https://a.example/mcp");
        assert_eq!((&claims["htm"], &claims["nonce"]), (&"POST".into(), &"n".into()));
        assert_eq!(claims["ath"], "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A");
        let coordinate =
            |name: &str| URL_SAFE_NO_PAD.decode(header["jwk"][name].as_str().unwrap()).unwrap();
        let point = [vec![4], coordinate("x"), coordinate("y")].concat();
        let (signed, signature) = proof.expose().rsplit_once('.').unwrap();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        public.verify(signed.as_bytes(), &signature).unwrap();
        let again = DpopKey::from_stored(key.stored()).unwrap();
        assert_eq!(again.public, key.public);
        assert_ne!(part(&again.proof(&request).unwrap(), 1)["jti"], claims["jti"]);
    }

    #[test]
    fn keys_that_are_none_are_refused_without_their_text() {
        for pem in ["", "hunter2", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
        {
            let Err(error) = SigningKey::from_pem(&Secret::new(pem)) else { panic!("{pem}") };
            assert!(!error.to_string().contains("hunter2"));
        }
    }
}
