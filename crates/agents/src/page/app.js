// The browser pane. Whatever comes from a session is put into the page as text, never as markup.

const $ = (id) => document.getElementById(id);
const TABS = { screen: "Screen", log: "Chat", out: "Answer", output: "Output", info: "Record" };
const ACTIONS = [
  ["interrupt", "Interrupt"], ["stop", "Stop"], ["restart", "Restart"],
  ["clear", "Clear"], ["compact", "Compact"],
];

let sessions = [];
let selected = null;
let tab = "screen";
let stream = null;

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function button(text, act) {
  const made = element("button", text, { type: "button" });
  made.addEventListener("click", act);
  return made;
}

function notice(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

async function call(path, method = "GET", body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  const is_json = (response.headers.get("content-type") || "").startsWith("application/json");
  const value = response.status === 204 ? null : is_json ? await response.json() : await response.text();
  if (!response.ok) throw new Error(value?.error || `HTTP ${response.status}`);
  return value;
}

async function attempt(work) {
  try {
    notice("");
    return await work();
  } catch (error) {
    notice(error.message);
    return undefined;
  }
}

// The token of the address is good for one exchange; it leaves the address at once.
async function enter() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", "/");
  const response = await fetch("/api/login", { method: "POST", headers: { authorization: `Bearer ${token}` } });
  if (!response.ok && (await fetch("/api/daemon/status")).status === 403)
    throw new Error("This address was used before. Run `beamtalk agents web` again for a new one.");
}

const current = () => sessions.find((session) => session.id === selected);
const title = (session) => session.alias || session.id;

function show_sessions() {
  $("sessions").replaceChildren(...sessions.map((session) => {
    const line = button("", () => select(session.id));
    line.append(
      element("strong", title(session)),
      element("span", session.state, { class: `state ${session.state}` }),
      element("small", `${session.backend} · ${session.cwd}`),
    );
    if (session.id === selected) line.setAttribute("aria-current", "true");
    const item = element("li");
    item.append(line);
    return item;
  }));
  const session = current();
  $("session").hidden = !session;
  $("empty").hidden = Boolean(session);
  if (!session) return;
  $("name").textContent = title(session);
  $("state").textContent = session.state;
  $("state").className = `state ${session.state}`;
  $("cwd").textContent = session.last_error ? `${session.cwd} — ${session.last_error}` : session.cwd;
}

async function refresh() {
  const [list, status] = await Promise.all([call("/api/sessions"), call("/api/daemon/status")]);
  sessions = list;
  $("daemon").textContent = status.running ? `${list.length} sessions · ${status.namespace}` : "no daemon";
  show_sessions();
}

// Escape sequences mean nothing outside a terminal.
const plain = (text) => text
  .replace(/\x1b\][^\x07\x1b]*(\x07|\x1b\\)/g, "")
  .replace(/\x1b\[[0-?]*[ -/]*[@-~]/g, "")
  .replace(/\x1b./g, "")
  .replace(/\r\n/g, "\n")
  .replace(/[^\n]*\r/g, "");

async function show_view() {
  const session = current();
  if (!session) return;
  const [id, wanted] = [session.id, tab];
  const value = wanted === "info"
    ? JSON.stringify(await call(`/api/session/${id}`), null, 2)
    : await call(`/api/session/${id}/${wanted}`);
  if (id !== selected || wanted !== tab) return;
  const view = $("view");
  const at_end = view.scrollTop + view.clientHeight >= view.scrollHeight - 8;
  view.textContent = wanted === "output" ? plain(value) : value;
  if (at_end) view.scrollTop = view.scrollHeight;
}

let drawing = false;
let again = false;

// At most one redraw under way and one waiting, however fast output comes.
async function redraw() {
  if (drawing) { again = true; return; }
  drawing = true;
  do {
    again = false;
    await show_view().catch(() => {});
    await new Promise((done) => setTimeout(done, 100));
  } while (again);
  drawing = false;
}

function select(id) {
  selected = id;
  stream?.close();
  stream = null;
  notice("");
  show_sessions();
  $("view").textContent = "";
  if (!current()) return;
  stream = new EventSource(`/api/session/${id}/stream`);
  stream.onmessage = () => redraw();
  stream.addEventListener("end", () => stream?.close());
  redraw();
}

function show_tabs() {
  $("tabs").replaceChildren(...Object.entries(TABS).map(([name, text]) => {
    const made = button(text, () => { tab = name; show_tabs(); redraw(); });
    made.setAttribute("role", "tab");
    made.setAttribute("aria-selected", String(name === tab));
    return made;
  }));
}

function act(command) {
  return attempt(() => call(`/api/session/${selected}/ctl`, "POST", { command }));
}

function show_actions() {
  const kill = button("Kill", async () => {
    const session = current();
    if (session && confirm(`Kill ${title(session)}?`)) await attempt(() => call(`/api/session/${session.id}`, "DELETE"));
  });
  const set = (name) => button(`${name[0].toUpperCase()}${name.slice(1)}…`, async () => {
    const session = current();
    if (!session) return;
    const now = name === "context" ? await call(`/api/session/${session.id}/context`) : session[name] || "";
    const value = window.prompt(`${name} of ${title(session)}`, now);
    if (value !== null) await attempt(() => call(`/api/session/${session.id}/${name}`, "PUT", { value }));
  });
  $("actions").replaceChildren(
    ...ACTIONS.map(([command, text]) => button(text, () => act(command))),
    set("alias"), set("context"), set("role"), kill,
  );
}

async function send(event) {
  event?.preventDefault();
  const text = $("text").value;
  if (!text.trim() || !selected) return;
  const sent = await attempt(() => call(`/api/session/${selected}/prompt`, "POST", { text }));
  if (sent) $("text").value = "";
}

async function answer(message, verdict) {
  const reason = verdict === "approved" ? "" : window.prompt("Reason");
  if (reason === null) return;
  const type = message.type.replace("_REQUEST", "_RESPONSE");
  const body = reason ? `${verdict}: ${reason}` : verdict;
  await attempt(async () => {
    await call("/api/inbox/reply", "POST", { id: message.id, type, body });
    await call("/api/inbox/archive", "POST", { id: message.id });
  });
  await show_mail();
}

async function decide(request, verdict) {
  const text = verdict === "approve" ? "" : window.prompt(verdict === "reject" ? "Reason" : request.summary);
  if (text === null) return;
  await attempt(() => call("/api/approvals/answer", "POST", { id: request.id, verdict, text, sha256: request.sha256 }));
  await show_waiting();
}

// Everything that waits for a person, wherever it comes from.
async function show_waiting() {
  const requests = await call("/api/approvals");
  $("waiting").hidden = requests.length === 0;
  $("approvals").replaceChildren(...requests.map((request) => {
    const item = element("li");
    const from = sessions.find((session) => session.id === request.session);
    item.append(
      element("strong", request.summary),
      element("small", `${from ? title(from) : request.session || "workspace"} · ${request.kind}`),
    );
    for (const text of [request.command, request.diff]) if (text) item.append(element("pre", text));
    const tools = element("div");
    tools.append(
      request.kind === "question"
        ? button("Answer", () => decide(request, "answer"))
        : button("Approve", () => decide(request, "approve")),
      button("Reject", () => decide(request, "reject")),
    );
    item.append(tools);
    return item;
  }));
}

async function show_mail() {
  const messages = await call("/api/inbox");
  $("count").textContent = messages.length || "";
  $("inbox").replaceChildren(...messages.map((message) => {
    const item = element("li");
    const from = sessions.find((session) => session.id === message.from);
    item.append(
      element("strong", message.subject),
      element("small", `${from ? title(from) : message.from} · ${message.type}`),
      element("p", message.body),
    );
    const tools = element("div");
    if (/^(APPROVAL|REVIEW)_REQUEST$/.test(message.type))
      tools.append(
        button("Approve", () => answer(message, "approved")),
        button("Reject", () => answer(message, "rejected")),
      );
    tools.append(button("Done", async () => {
      await attempt(() => call("/api/inbox/archive", "POST", { id: message.id }));
      await show_mail();
    }));
    item.append(tools);
    return item;
  }));
}

async function open_form() {
  const lines = (await attempt(() => call("/api/backends"))) || "";
  $("backend").replaceChildren(...lines.split("\n").filter(Boolean).map((line) => {
    const [name, status, text] = line.split("\t");
    const option = element("option", `${name}${text ? ` — ${text}` : ""}`, { value: name });
    option.disabled = status !== "ready";
    return option;
  }));
  $("refused").textContent = "";
  $("create").showModal();
}

async function create(event) {
  event.preventDefault();
  try {
    const made = await call("/api/sessions", "POST", {
      backend: $("backend").value, cwd: $("directory").value, alias: $("alias").value, level: $("level").value,
    });
    $("create").close();
    await refresh();
    select(made.id);
  } catch (error) {
    $("refused").textContent = error.message;
  }
}

function follow_events() {
  const events = new EventSource("/api/events");
  const look = () => attempt(async () => { await refresh(); await show_waiting(); await show_mail(); redraw(); });
  events.onopen = look;
  events.onmessage = (message) => {
    const event = JSON.parse(message.data);
    const state = event.data?.state ? ` ${event.data.state}` : "";
    $("events").prepend(element("div", `${new Date(event.ts * 1000).toLocaleTimeString()} ${event.type} ${event.source}${state}`));
    while ($("events").childElementCount > 50) $("events").lastElementChild.remove();
    look();
  };
  events.addEventListener("end", () => { events.close(); lost(); });
  events.onerror = () => { if (events.readyState === EventSource.CLOSED) lost(); };
}

// The last view stays while the daemon is away.
function lost() {
  $("daemon").textContent = "disconnected";
  setTimeout(follow_events, 1000);
}

show_tabs();
show_actions();
$("prompt").addEventListener("submit", send);
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
});
$("new").addEventListener("click", open_form);
$("start").addEventListener("click", create);
addEventListener("beforeunload", () => stream?.close());
await attempt(async () => {
  await enter();
  follow_events();
});
