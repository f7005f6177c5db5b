//! A peer that runs between a client and servers: started, connected, and measured round by round.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::client::{CallShape, HttpClient, PeerClient, PeerEndpoint, StdioClient};
use super::process::{PeerProcess, processor_time_of};
use super::program::{Contender, Front, Launch, Program, Upstream};

/// Time for a peer to start and list its tools. Interpreters with 30 servers take long.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(45);

/// Time for one round of calls.
const ROUND_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause between attempts to connect to a peer that starts.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A connected peer.
pub(crate) struct Instance {
    pub(crate) process: PeerProcess,
    pub(crate) endpoint: Option<PeerEndpoint>,
    client: PeerClient,
    tool: String,
    /// Whether processor time says something: the process of a direct connection is the server.
    has_processor_time: bool,
    /// Processes of the peer after its start.
    processes: Vec<u32>,
    /// Time until all tools were listed.
    pub(crate) start: Duration,
}

/// A list that a peer has to return before it counts as ready.
#[derive(Clone, Copy)]
pub(crate) struct ReadyList {
    /// The end of the name of a tool.
    pub(crate) tool: &'static str,
    /// The least number of tools.
    pub(crate) count: usize,
    /// Time for a peer to start and list them.
    pub(crate) timeout: Duration,
}

/// Measurements of one round.
pub(crate) struct Round {
    /// Processor time of the peer per call.
    pub(crate) busy: Option<Duration>,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) rate: f64,
}

impl Instance {
    /// Starts a peer, and waits until it lists the tools.
    pub(crate) async fn start(
        contender: &Contender,
        front: Front,
        servers: &[Upstream],
        ready: ReadyList,
    ) -> Result<Self, String> {
        let launch = contender.launch(front, servers)?;
        let Launch { command, home, mut endpoint } = launch;
        let start = Instant::now();
        let (mut process, streams) = PeerProcess::start(command, home, front == Front::Stdio)?;
        let mut client = match streams {
            None => None,
            Some((input, output)) => {
                let client = StdioClient::open(contender.era, input, output);
                let client = timeout(ready.timeout, client).await;
                let client = client.map_err(|_| "no answer to the first request".to_owned())?;
                let client =
                    client.map_err(|error| format!("{error}; {}", process.last_words()))?;
                Some(PeerClient::Stdio(client))
            }
        };
        let tool = loop {
            if let Some(reason) = process.end_reason() {
                return Err(reason);
            }
            match attempt(&mut client, &mut endpoint, &process, ready).await {
                Ok(tool) => break tool,
                Err(last) if start.elapsed() > ready.timeout => {
                    return Err(format!("not ready after {:?}: {last}", ready.timeout));
                }
                Err(_) => sleep(POLL_INTERVAL).await,
            }
        };
        let (start, client) = (start.elapsed(), client.ok_or("it was not connected")?);
        let processes = process.processes();
        let has_processor_time = contender.program != Program::Direct;
        Ok(Self { process, endpoint, client, tool, has_processor_time, processes, start })
    }

    /// Makes calls and measures them.
    pub(crate) async fn round(&mut self, shape: &CallShape, count: usize) -> Result<Round, String> {
        let (start, busy) = (Instant::now(), processor_time_of(&self.processes));
        let calls = self.client.call(&self.tool, shape, count);
        let times = timeout(ROUND_TIMEOUT, calls).await;
        let mut times = times.map_err(|_| format!("no answer within {ROUND_TIMEOUT:?}"))??;
        let elapsed = start.elapsed();
        let busy = processor_time_of(&self.processes).saturating_sub(busy);
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        Ok(Round {
            busy: self.has_processor_time.then(|| busy / times.len() as u32),
            p50: at(50),
            p99: at(99),
            rate: times.len() as f64 / elapsed.as_secs_f64(),
        })
    }

    /// Requests the complete list of tools.
    pub(crate) async fn list(&mut self) -> Result<usize, String> {
        let listed = timeout(ROUND_TIMEOUT, self.client.tools(&self.tool)).await;
        Ok(listed.map_err(|_| "no answer to `tools/list`")??.0)
    }

    /// Number of calls that take about so long.
    pub(crate) async fn calibrate(
        &mut self,
        shape: &CallShape,
        budget: Duration,
        most: usize,
    ) -> Result<usize, String> {
        // The first calls fill caches and start lazy parts; the second round is measured.
        let few = shape.in_flight.max(4);
        self.round(shape, few).await?;
        let rate = self.round(shape, 2 * few).await?.rate;
        self.processes = self.process.processes();
        let count = (rate * budget.as_secs_f64()) as usize;
        Ok(count.clamp(few, most.max(few)).next_multiple_of(shape.in_flight))
    }
}

/// One attempt to get the list; the name of the tool if it is complete.
async fn attempt(
    client: &mut Option<PeerClient>,
    endpoint: &mut Option<PeerEndpoint>,
    process: &PeerProcess,
    ready: ReadyList,
) -> Result<String, String> {
    if let Some(endpoint) = endpoint.as_mut().filter(|endpoint| endpoint.port == 0) {
        let log = process.log();
        endpoint.port = log.lines().next().and_then(|it| it.parse().ok()).ok_or("no port yet")?;
    }
    let client = match (client, endpoint) {
        (Some(client), _) => client,
        (none, Some(endpoint)) => {
            let opened = timeout(ready.timeout, HttpClient::open(endpoint.clone())).await;
            none.insert(PeerClient::Http(opened.map_err(|_| "no answer to `initialize`")??))
        }
        (None, None) => return Err("no transport".to_owned()),
    };
    let listed = timeout(ready.timeout, client.tools(ready.tool)).await;
    let (count, tool) = listed.map_err(|_| "no answer to `tools/list`")??;
    if count < ready.count {
        return Err(format!("{count} tools of {}", ready.count));
    }
    tool.ok_or_else(|| format!("no tool `{}` among {count}", ready.tool))
}

/// Starts contenders that can join the transports.
pub(crate) fn start_all(
    runtime: &Runtime,
    contenders: &[Contender],
    front: Front,
    servers: impl Fn(&Contender) -> Vec<Upstream>,
    ready: ReadyList,
) -> Vec<(Contender, Result<Instance, String>)> {
    let is_able = |it: &&Contender| it.is_chosen() && it.can_join(front, &servers(it));
    let able = contenders.iter().filter(is_able);
    let start = |contender: &Contender| {
        let servers = servers(contender);
        (*contender, runtime.block_on(Instance::start(contender, front, &servers, ready)))
    };
    able.map(start).collect()
}
