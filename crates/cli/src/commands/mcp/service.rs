//! The server inside the workspace's daemon: AI clients that come by HTTP, and tasks that go on without theirs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use beamtalk_client::Place;
use beamtalk_mcp::{Endpoint, HttpAnswer, HttpRequest, NarrowedBy, Policy, Progress, Way, work};
use beamtalk_project::Network;
use beamtalk_storage::{StateDirectory, WorkspaceId};
use beamtalk_wire::Role;
use beamtalk_workspace::gate::Principal;
use beamtalk_workspace::{Answering, Inside, Link, McpService};

use super::host::{Reach, Workspace};
use super::rules::{Asked, Rules};
use crate::config::{Config, McpConfig};

/// Endpoints by the name of the principal and the policy of its token.
type Endpoints = HashMap<(String, Option<String>), Rc<Endpoint<Workspace>>>;

struct Service {
    link: Link,
    place: Arc<Place>,
    user: McpConfig,
    endpoints: RefCell<Endpoints>,
    hosts: RefCell<HashMap<String, Rc<Workspace>>>,
}

/// Make what answers AI clients in a daemon; settings that try to widen are a reason not to.
pub(crate) fn make(inside: Inside) -> Result<Rc<dyn McpService>, String> {
    let state = StateDirectory::open(None).map_err(|cause| cause.to_string())?;
    let id = WorkspaceId::named(&inside.id).map_err(|cause| cause.to_string())?;
    let config = Config::of(&state).map_err(|fault| fault.message)?;
    let place = Place {
        state,
        id,
        is_named: true,
        root: inside.root,
    };
    let asked = Asked {
        way: Way::Http,
        ..Asked::default()
    };
    Rules::new(&asked, &config.mcp, &place.root).map_err(|cause| cause.to_string())?;
    Ok(Rc::new(Service {
        link: inside.link,
        place: Arc::new(place),
        user: config.mcp,
        endpoints: RefCell::default(),
        hosts: RefCell::default(),
    }))
}

impl Service {
    /// What holds for a principal. A token has the policy it was made with, an observer only looks.
    fn rules(&self, principal: &Principal) -> Result<Rules, String> {
        let asked = Asked {
            policy: principal.policy.clone(),
            way: Way::Http,
            ..Asked::default()
        };
        let mut rules =
            Rules::new(&asked, &self.user, &self.place.root).map_err(|cause| cause.to_string())?;
        if let Some(policy) = &principal.policy {
            let policy: Policy = policy.parse()?;
            if rules.settings.policy == policy && policy < Policy::Full {
                rules.settings.narrowed_by = Some(NarrowedBy::Token);
            }
        }
        if principal.role == Role::Observer {
            rules.settings.narrow(Policy::ReadOnly, NarrowedBy::Role);
        }
        Ok(rules)
    }

    /// The workspace as a principal sees it.
    fn host(&self, principal: &Principal) -> Result<Rc<Workspace>, String> {
        let name = principal.name();
        if let Some(host) = self.hosts.borrow().get(&name) {
            return Ok(host.clone());
        }
        let reach = Reach::Inside {
            link: self.link.clone(),
            principal: principal.clone(),
        };
        let rules = self.rules(principal)?;
        let host = Rc::new(Workspace::new(
            self.place.clone(),
            reach,
            Network::Allowed,
            &rules,
        ));
        self.hosts.borrow_mut().insert(name, host.clone());
        Ok(host)
    }

    fn endpoint(&self, principal: &Principal) -> Result<Rc<Endpoint<Workspace>>, String> {
        let key = (principal.name(), principal.policy.clone());
        if let Some(endpoint) = self.endpoints.borrow().get(&key) {
            return Ok(endpoint.clone());
        }
        let settings = Rc::new(self.rules(principal)?.settings);
        let new_id = || {
            let bytes = beamtalk_storage::random_bytes::<16>().ok()?;
            Some(beamtalk_storage::base64url(&bytes))
        };
        let endpoint = Endpoint::new(self.host(principal)?, settings, new_id);
        self.endpoints.borrow_mut().insert(key, endpoint.clone());
        Ok(endpoint)
    }
}

impl McpService for Service {
    fn answer(
        &self,
        principal: Principal,
        request: HttpRequest,
        gone: Answering<()>,
    ) -> Answering<HttpAnswer> {
        match self.endpoint(&principal) {
            Ok(endpoint) => Box::pin(async move { endpoint.answer(request, gone).await }),
            Err(reason) => Box::pin(async move {
                HttpAnswer::refused(503, &format!("the settings of AI clients do not hold: {reason}"))
            }),
        }
    }

    fn work(
        &self,
        principal: Principal,
        order: String,
        task: String,
        progress: Rc<Progress>,
    ) -> Answering<Result<String, String>> {
        match self.host(&principal) {
            Ok(host) => Box::pin(async move { work(host, &order, &task, &progress).await }),
            Err(reason) => Box::pin(async { Err(reason) }),
        }
    }
}
