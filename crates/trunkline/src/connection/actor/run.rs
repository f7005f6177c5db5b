//! Serves a running session: commands, events of the server, and the idle timeout.

use std::sync::Arc;

use tokio::time::Instant;

use super::backoff::RestartAttempts;
use super::legacy_subscribe::LegacySubscriptions;
use super::list_refresh::{InternalRequests, ListRefreshes};
use super::listen::{ACKNOWLEDGED, ListenEvent, ListenSubscription};
use super::logging::LogLevelSync;
use super::rare_events::RareEvent;
use super::{
    Command, DownReason, ExitReason, NextState, PAUSE_AFTER_FORGOTTEN, ServerActor, queue_full,
    refuse, stale, too_many,
};
use crate::connection::cache::{CacheRecord, NegotiatedProtocol};
use crate::connection::handler::untrusted;
use crate::connection::handshake::ConnectedServer;
use crate::connection::pagination::{ItemList, PageReader};
use crate::connection::request_error::late_error;
use crate::connection::server_notification::ServerNotification;
use crate::connection::session::{RequestOutcome, Session, SessionEvent};
use crate::item::ItemKind;
use crate::message::Raw;
use crate::protocol::Era;
use crate::timer::{LazyTimer, wait_until};

/// Maximum size of a broadcast notification, such as a list change or a log message. It stays in
/// memory until the slowest receiver has read it.
const MAX_TOLD_BYTES: usize = 1024 * 1024;

const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// Background requests of the connection itself.
struct BackgroundJobs {
    relistings: ListRefreshes,
    subscription: ListenSubscription,
    errands: LegacySubscriptions,
    logging: LogLevelSync,
    idle_timer: LazyTimer,
    spoken: NegotiatedProtocol,
}

/// Why a log level is requested.
#[derive(Clone, Copy)]
enum LogReason {
    /// The connection restores the earlier level, on behalf of no particular client.
    Start,
    /// A client requested it now.
    Client,
}

impl ServerActor {
    /// Serves until the server ends, the idle timeout expires, or a command stops the actor.
    pub(super) async fn serve(
        &mut self,
        opened: Box<ConnectedServer>,
        waiting: Vec<Command>,
        attempts: &mut RestartAttempts,
    ) -> NextState {
        let since = Instant::now();
        let ConnectedServer { mut session, described, spoken, tools } = *opened;
        let mut chores = BackgroundJobs {
            relistings: ListRefreshes::new(),
            subscription: ListenSubscription::new(&session, &described),
            errands: LegacySubscriptions::of(&described),
            logging: LogLevelSync::of(&session, &described),
            idle_timer: LazyTimer::default(),
            spoken,
        };
        // Tools first: a caller that sees the server ready sees its tools.
        self.on_list(&mut session, chores.spoken, tools);
        self.published.ready(&session, &described);
        self.published.record_noise(&session);
        self.watched.begin();
        self.sync_log_level(&mut session, &mut chores, LogReason::Start);
        for command in waiting {
            self.handle_command(&mut session, &mut chores, command);
        }
        self.sync_subscriptions(&mut session, &mut chores);
        let end = self.run_session(&mut session, &mut chores).await;
        self.published.record_noise(&session);
        attempts.apply_settings(self.behaviour().restart);
        attempts.record_lifetime(since.elapsed());
        // State first: a caller that receives the failure of its call sees the state of the server.
        let down = self.down_reason(&end, attempts);
        if let ExitReason::Server(error) | ExitReason::OutOfReach(error) = &end {
            chores.relistings.fail(&error.clone().of(&self.server.name));
        }
        match &end {
            // The next request starts a new session, while pending requests complete in this one.
            ExitReason::Forgotten | ExitReason::OutOfReach(_) => {
                self.fading.spawn(session.drain(self.shutdown_timeout()));
            }
            _ => {
                let remaining = Box::pin(session.close(self.shutdown_timeout())).await;
                self.published.record_orphans(&self.server.name, remaining, &self.options);
            }
        }
        match end {
            ExitReason::Told(close) => NextState::Close(close),
            _ => NextState::Down(down),
        }
    }

    /// Publishes the state of a server after its session, and returns why it is down.
    fn down_reason(&mut self, end: &ExitReason, attempts: &mut RestartAttempts) -> DownReason {
        if self.may_return() {
            attempts.keep_reaching();
        }
        match end {
            ExitReason::Server(error) | ExitReason::OutOfReach(error) => {
                self.failed(&error.clone().of(&self.server.name), attempts)
            }
            ExitReason::Idle | ExitReason::Forgotten => {
                // Later calls wait for a start.
                self.published.idle();
                match end {
                    ExitReason::Forgotten if !self.watched.is_empty() => {
                        DownReason::Until(Instant::now() + PAUSE_AFTER_FORGOTTEN)
                    }
                    _ => DownReason::Idle,
                }
            }
            ExitReason::Told(_) => DownReason::Idle,
        }
    }

    async fn run_session(
        &mut self,
        session: &mut Session,
        chores: &mut BackgroundJobs,
    ) -> ExitReason {
        loop {
            let idle_at = self.idle_at(session, chores);
            let due = chores.relistings.next_due();
            tokio::select! {
                event = session.next() => match event {
                    SessionEvent::Closed(error) => return ExitReason::Server(error),
                    SessionEvent::SessionExpired => return ExitReason::Forgotten,
                    SessionEvent::Unreachable(error) => return ExitReason::OutOfReach(error),
                    SessionEvent::Notification(notification, client) => {
                        self.on_notification(session, chores, ServerNotification { notification, client });
                    }
                    SessionEvent::InvalidMessage => self.published.record_noise(session),
                    SessionEvent::UnanswerableRequest => self.published.record_unanswerable(),
                    SessionEvent::Idle => {}
                },
                (kind, answer) = chores.relistings.answer() => {
                    self.on_list_page(session, chores, (kind, answer));
                }
                () = wait_until(due.map(|(time, _)| time)) => {
                    due.iter().for_each(|(_, kind)| self.refresh_list(session, chores, *kind));
                }
                step = chores.subscription.next() => self.subscribe(session, chores, step),
                done = chores.errands.next() => {
                    done.settle(&mut self.watched);
                    self.sync_subscriptions(session, chores);
                }
                event = self.rare_events.next() => match event {
                    RareEvent::Cancelled(request) => session.cancel_request(*request),
                    RareEvent::Hold(hold) => {
                        self.watched.settle(*hold);
                        self.sync_subscriptions(session, chores);
                    }
                    RareEvent::LogLevel => self.sync_log_level(session, chores, LogReason::Client),
                    // A new `idleTimeout` counts from the last use of the server.
                    RareEvent::Settings => {}
                },
                command = self.commands.recv() => match command {
                    Some(command) => {
                        if let Some(close) = self.handle_commands(session, chores, command) {
                            return ExitReason::Told(Some(close));
                        }
                    }
                    None => return ExitReason::Told(None),
                },
                () = chores.idle_timer.wait_until(idle_at) => return ExitReason::Idle,
            }
        }
    }

    /// Time at which the idle timeout expires (CON-14).
    fn idle_at(&self, session: &Session, chores: &BackgroundJobs) -> Option<Instant> {
        let patience = self.behaviour().idle_timeout.filter(|_| self.watched.is_empty())?;
        let since = session.idle_since().filter(|_| !chores.relistings.any_running())?;
        since.checked_add(patience)
    }

    /// Handles a notification that does not belong to one request.
    fn on_notification(
        &mut self,
        session: &mut Session,
        chores: &mut BackgroundJobs,
        said: ServerNotification,
    ) {
        let notification = &said.notification;
        if &*notification.method == ACKNOWLEDGED {
            // Concerns only this connection.
            return self.acknowledged(session, chores, notification.params.as_ref());
        }
        if notification.params.as_ref().is_some_and(|it| it.bytes().len() > MAX_TOLD_BYTES) {
            session.noise += 1;
            return self.published.record_noise(session);
        }
        if chores.subscription.repeats(notification) {
            return;
        }
        for kind in ItemKind::list_changed_method(&notification.method) {
            self.published.mark_stale(*kind);
            // A list that was never requested is not requested now.
            if self.published.listed(*kind).is_known {
                chores.relistings.of(*kind).changed();
            }
        }
        let notification = untrusted::sanitized_notification(self.server.trust, said.notification);
        let said = ServerNotification { notification, ..said };
        if let Some(handler) = self.options.handler() {
            handler.on_notification(&said.notification);
        }
        // Fails only if there is no listener.
        let _ = self.told.send(Arc::new(said));
    }

    /// Handles the acknowledgement of `subscriptions/listen`. Refreshes lists, which may have
    /// changed before it.
    fn acknowledged(
        &mut self,
        session: &mut Session,
        chores: &mut BackgroundJobs,
        params: Option<&Raw>,
    ) {
        let is_first = chores.subscription.acknowledged(session, &mut self.watched, params);
        if !is_first {
            return;
        }
        for kind in chores.subscription.announced_kinds() {
            if self.published.listed(kind).is_known {
                chores.relistings.of(kind).changed();
            }
        }
    }

    /// Handles all queued commands, so that messages that are ready together are written together.
    /// Returns the command that ends the server, if it is among them.
    fn handle_commands(
        &mut self,
        session: &mut Session,
        chores: &mut BackgroundJobs,
        first: Command,
    ) -> Option<Command> {
        let mut next = Some(first);
        while let Some(command) = next {
            if command.ends_server() {
                return Some(command);
            }
            self.handle_command(session, chores, command);
            next = self.commands.try_recv().ok();
        }
        None
    }

    fn handle_command(
        &mut self,
        session: &mut Session,
        chores: &mut BackgroundJobs,
        command: Command,
    ) {
        match command {
            Command::Connect(done) => {
                let _ = done.send(Ok(()));
            }
            Command::Request(ref asked) if !session.admits(asked) => refuse(command, &too_many()),
            Command::Request(_) if session.is_full() => refuse(command, &queue_full()),
            // The caller is gone, or the deadline passed before it was sent.
            Command::Request(ref asked)
                if asked.reply.is_closed() || asked.deadline <= Instant::now() =>
            {
                refuse(command, &late_error());
            }
            // The tool list has changed since the caller read it.
            Command::Request(ref asked)
                if asked.within.is_some_and(|it| it != self.published.tools_revision()) =>
            {
                refuse(command, &stale());
            }
            Command::Request(asked) => {
                self.published.record_call();
                session.send_request(*asked);
            }
            Command::RespondToServer { session: number, response } => {
                session.respond(number, *response);
            }
            // No caller waits for it, and the outbound queue is full.
            Command::Notify(..) if session.is_full() => {}
            // Modern servers request roots each time they need them.
            Command::Notify(ref notice)
                if &*notice.0.method == ROOTS_CHANGED && session.version.era() == Era::Modern => {}
            Command::Notify(notice) => session.notify_for(&notice.1, notice.0),
            Command::Refresh(kind, done) if self.published.listed(kind).is_fresh() => {
                let _ = done.send(Ok(()));
            }
            Command::Refresh(kind, done) if !self.published.offers(kind) => {
                let none = PageReader::new(kind, session.sends_param_headers()).finish();
                self.on_list(session, chores.spoken, none);
                let _ = done.send(Ok(()));
            }
            Command::Refresh(kind, done) => {
                chores.relistings.of(kind).wait(done);
                self.refresh_list(session, chores, kind);
            }
            Command::Subscribe(wanted, reply) => {
                let (subject, requester) = *wanted;
                self.watched.subscribe(subject, &requester, reply);
                self.sync_subscriptions(session, chores);
            }
            // Handled by the caller of this method.
            Command::Stop(_) | Command::Close(_) => {}
        }
    }

    /// Publishes a complete list, and writes it to the disk cache.
    fn on_list(&mut self, session: &mut Session, spoken: NegotiatedProtocol, list: ItemList) {
        let ttl = list.ttl.unwrap_or(self.behaviour().tools_ttl);
        if list.kind == ItemKind::Tool {
            session.set_param_headers(list.mirrored.clone());
        }
        let record = self.options.cache().store(&self.fingerprint, spoken, &list);
        // Before the list is published: who sees it can wait for the write.
        if let Some(record) = record {
            self.write_record(record);
        }
        self.published.set_list(list, ttl);
    }

    /// Writes a list to the disk cache. A list that repeats a secret is removed there.
    fn write_record(&mut self, record: CacheRecord) {
        let kind = record.kind();
        let (published, masking) = (Arc::clone(&self.published), Arc::clone(&self.published));
        let written = self.options.cache().write(record, move || masking.mask());
        self.writing.spawn(async move {
            let reason = written.await;
            // A list of another kind says nothing about the tools.
            if kind == ItemKind::Tool || reason.is_some() {
                published.record_cache_error(reason);
            }
        });
    }

    /// Handles a page of a list, and publishes the list if it is complete.
    fn on_list_page(
        &mut self,
        session: &mut Session,
        chores: &mut BackgroundJobs,
        page: (ItemKind, RequestOutcome),
    ) {
        let (kind, answer) = page;
        let asking = self.internal_requests();
        let Some(list) = chores.relistings.of(kind).on_page(session, asking, answer) else {
            return;
        };
        let result = list.map(|list| self.on_list(session, chores.spoken, list));
        let relisting = chores.relistings.of(kind);
        if relisting.is_due() {
            self.published.mark_stale(kind);
        }
        relisting.notify_waiters(&result);
        // The old list stays in use.
        if let Err(error) = result {
            self.published.record_error(error.of(&self.server.name));
        }
    }

    /// Sends the subscriptions that the server does not have yet.
    fn sync_subscriptions(&mut self, session: &mut Session, chores: &mut BackgroundJobs) {
        match session.version.era() {
            Era::Modern => chores.subscription.sync(&mut self.watched),
            Era::Legacy => {
                let patience = self.behaviour().timeouts.list;
                let asking = InternalRequests::new(&self.ids, patience);
                chores.errands.run(session, &mut self.watched, asking);
            }
        }
    }

    fn sync_log_level(
        &mut self,
        session: &mut Session,
        chores: &mut BackgroundJobs,
        reason: LogReason,
    ) {
        let wanted = self.log_level.borrow_and_update().clone();
        let Some((level, requester)) = wanted else { return };
        let requester = match reason {
            LogReason::Start => None,
            LogReason::Client => requester,
        };
        chores.logging.request_level(session, self.internal_requests(), (level, requester));
    }

    fn subscribe(&mut self, session: &mut Session, chores: &mut BackgroundJobs, step: ListenEvent) {
        match step {
            ListenEvent::Make => {
                chores.subscription.open_request(session, &mut self.watched, self.ids.next());
            }
            ListenEvent::Late => chores.subscription.late(session, &mut self.watched),
            ListenEvent::Retire => chores.subscription.retire(session),
            ListenEvent::Over(which, answer) => {
                chores.subscription.over(which, &answer, &mut self.watched);
                // Changes while the stream was down were missed.
                ItemKind::ALL.iter().for_each(|kind| self.published.mark_stale(*kind));
            }
        }
    }

    fn refresh_list(&self, session: &mut Session, chores: &mut BackgroundJobs, kind: ItemKind) {
        chores.relistings.of(kind).start(session, self.internal_requests());
    }
}
