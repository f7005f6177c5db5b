//! Scenarios with an authorization server: logs in where the library asks for it, and repeats what needed it.

use std::env;
use std::sync::Arc;

use serde_json::{Value, json};
use trunkline::Host;
use trunkline::connection::{Connection, RequestError};
use trunkline::error::{Error, ErrorKind};
use trunkline::oauth::{LoginRequest, OAuth, OAuthOptions};
use trunkline::secrets::MemoryStore;
use trunkline_testkit::browser;
use url::Url;

use crate::answers::arguments_for;
use crate::{Failure, context, tool_call};

/// The client metadata document that the suite expects.
const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// The redirect URI. Nothing listens there: the redirect is read from the response.
const REDIRECT_URI: &str = "http://127.0.0.1:33418/callback";

/// Logins before the program gives up. The library asks for far fewer.
const MAX_LOGINS: usize = 10;

/// Lists the tools of a server and calls them, with as many logins as the library asks for.
pub(crate) async fn run(url: &str) -> Result<(), Failure> {
    let mut options = OAuthOptions::default();
    options.client_metadata_url = Some(CLIENT_METADATA_URL.into());
    let oauth = OAuth::new(Arc::new(MemoryStore::default()), options);
    let text = json!({ "mcpServers": { "suite": {
        "type": "http", "url": url, "oauth": settings()?,
    } } });
    let host = Host::builder().config_text("suite", text.to_string()).oauth(oauth).start().await?;
    let result = play(&host).await;
    host.shutdown().await;
    result
}

async fn play(host: &Host) -> Result<(), Failure> {
    let connection = host.servers().get("suite").ok_or("the server is not configured")?;
    for _ in 0..MAX_LOGINS {
        match call_tools(&connection).await {
            Err(failure) if needs_login(&failure) => login(host).await?,
            result => return result,
        }
    }
    Err("the library asks for logins without end".into())
}

async fn call_tools(connection: &Connection) -> Result<(), Failure> {
    connection.connect().await?;
    for tool in connection.tools().iter() {
        tool_call(connection, &Value::from(tool.name()), arguments_for(tool)).await?;
    }
    Ok(())
}

fn needs_login(failure: &Failure) -> bool {
    let error = match failure.downcast_ref::<RequestError>() {
        Some(RequestError::Failed(error)) => Some(error),
        _ => failure.downcast_ref::<Error>(),
    };
    let kind = error.map(Error::kind);
    matches!(kind, Some(ErrorKind::NeedsLogin | ErrorKind::NeedsScopes))
}

async fn login(host: &Host) -> Result<(), Failure> {
    let request = LoginRequest::default().redirect_uri(REDIRECT_URI);
    let login = host.begin_login("suite", request).await?;
    let callback = browser::open(login.url().as_str()).await;
    login.finish(&Url::parse(&callback)?).await?;
    Ok(())
}

/// The settings of OAuth for the credentials of a scenario.
fn settings() -> Result<Value, Failure> {
    if env::var_os("MCP_CONFORMANCE_CONTEXT").is_none() {
        return Ok(json!({}));
    }
    let context = context()?;
    let mut settings = json!({ "clientId": context["client_id"] });
    let mut set = |key: &str, value: &Value| {
        if !value.is_null() {
            settings[key] = value.clone();
        }
    };
    set("clientSecret", &context["client_secret"]);
    set("privateKey", &context["private_key_pem"]);
    set("assertion", &context["valid_jwt"]);
    let grant = match context["name"].as_str().unwrap_or_default() {
        "auth/wif-jwt-bearer" => "jwt-bearer",
        "auth/enterprise-managed-authorization" => "enterprise-managed",
        name if name.starts_with("auth/client-credentials") => "client-credentials",
        _ => "authorization-code",
    };
    set("grant", &grant.into());
    if !context["idp_token_endpoint"].is_null() {
        let provider = json!({
            "tokenUrl": context["idp_token_endpoint"],
            "clientId": context["idp_client_id"],
            "idToken": context["idp_id_token"],
        });
        set("identityProvider", &provider);
    }
    Ok(settings)
}
