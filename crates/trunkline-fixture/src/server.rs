//! The `rmcp` server handler.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CompletionInfo, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Implementation, InputResponses, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::broadcast::error::RecvError;

use crate::call::{Call, Session};
use crate::eras::ServedEras;
use crate::world::{Change, WATCHED, World};
use crate::{catalog, prompts, resources, tools};

/// The server of one connection, or of one stateless request.
pub(crate) struct Fixture {
    world: Arc<World>,
    session: Arc<Session>,
    generation: ServedEras,
}

impl Fixture {
    pub(crate) fn new(world: Arc<World>, generation: ServedEras) -> Self {
        Self { world, session: Arc::default(), generation }
    }

    fn call(
        &self,
        context: RequestContext<RoleServer>,
        arguments: Option<JsonObject>,
        answers: Option<InputResponses>,
        state: Option<String>,
    ) -> Call {
        Call {
            world: self.world.clone(),
            session: self.session.clone(),
            context,
            arguments: arguments.unwrap_or_default(),
            answers: answers.unwrap_or_default(),
            state,
        }
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        let mut config = ServerConfig::new(capabilities)
            .with_instructions("A server for tests: it offers a little of everything.");
        config.server_info = Implementation::new("trunkline-fixture", env!("CARGO_PKG_VERSION"));
        config.protocol_version = self.generation.newest();
        config
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.generation.versions()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(catalog::tools(self.world.has_added_tool())))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tools = catalog::tools(self.world.has_added_tool());
        tools.into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        let call = self.call(context, arguments, input_responses, request_state);
        tools::call(&name, &call).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(catalog::prompts(self.world.has_added_prompt())))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let GetPromptRequestParams { name, arguments, input_responses, request_state, .. } =
            request;
        let call = self.call(context, arguments, input_responses, request_state);
        prompts::get(&name, &call).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = CompletionInfo::with_all_values(prompts::complete(&request));
        Ok(CompleteResult::new(values.expect("invariant: there are less than a hundred")))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(catalog::resources(self.world.profile)))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(catalog::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut subscribed = self.session.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        subscribed.insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut subscribed = self.session.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        subscribed.remove(&request.uri);
        Ok(())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // `rmcp` rejects other legacy methods itself, but not this one.
        if self.call(context, None, None, None).is_modern() {
            return Err(ErrorData::method_not_found::<rmcp::model::SetLevelRequestMethod>());
        }
        let mut level = self.session.level.lock().unwrap_or_else(PoisonError::into_inner);
        *level = Some(request.level);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (world, session) = (self.world.clone(), self.session.clone());
        tokio::spawn(tell_session(world, session, context.peer));
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.world.changes();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = subscription.cancelled() => return Ok(()),
            };
            let sink = subscription.sink();
            // Fails for changes without a subscription, which is expected.
            let _ = match change {
                Ok(Change::Tools) => sink.notify_tool_list_changed().await,
                Ok(Change::Prompts) => sink.notify_prompt_list_changed().await,
                Ok(Change::WatchedResource) => sink.notify_resource_updated(WATCHED).await,
                Err(RecvError::Lagged(_)) => continue,
                Err(RecvError::Closed) => return Ok(()),
            };
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.world.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.world.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.world.tasks.cancel_task(&request.task_id)
    }
}

/// Notifies a legacy client of changes until it disconnects.
async fn tell_session(world: Arc<World>, session: Arc<Session>, peer: Peer<RoleServer>) {
    let mut changes = world.changes();
    loop {
        let told = match changes.recv().await {
            Ok(Change::Tools) => peer.notify_tool_list_changed().await,
            Ok(Change::Prompts) => peer.notify_prompt_list_changed().await,
            Ok(Change::WatchedResource) if session.is_subscribed(WATCHED) => {
                let update = ResourceUpdatedNotificationParam::new(WATCHED);
                peer.notify_resource_updated(update).await
            }
            Ok(Change::WatchedResource) | Err(RecvError::Lagged(_)) => Ok(()),
            Err(RecvError::Closed) => return,
        };
        if told.is_err() {
            return;
        }
    }
}
