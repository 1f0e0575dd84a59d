// The view's side of the conversation with its host: JSON-RPC over postMessage.
const waiting = new Map(), listeners = new Map();
let next = 1;
function post(message) { window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*"); }
function request(method, params) {
  const id = next++;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    post({ id, method, params });
  });
}
function call(name, given) { return request("tools/call", { name, arguments: given }); }
function on(method, listener) { listeners.set(method, listener); }
function resized() {
  const root = document.documentElement;
  post({ method: "ui/notifications/size-changed", params: { width: root.scrollWidth, height: root.scrollHeight } });
}
function dress(context) {
  const theme = context?.theme;
  if (theme === "light" || theme === "dark") document.documentElement.style.colorScheme = theme;
  for (const [name, value] of Object.entries(context?.styles?.variables || {})) {
    if (/^--[a-z0-9-]+$/.test(name) && typeof value === "string") document.documentElement.style.setProperty(name, value);
  }
}
window.addEventListener("message", (event) => {
  // Only the page that shows us is listened to.
  if (event.source !== window.parent) return;
  const message = event.data;
  if (!message || message.jsonrpc !== "2.0") return;
  const asked = waiting.get(message.id);
  if (asked && !message.method) {
    waiting.delete(message.id);
    if (message.error) asked.reject(new Error(String(message.error.message)));
    else asked.resolve(message.result || {});
  } else if (message.method === "ui/notifications/host-context-changed") {
    dress(message.params);
  } else if (message.method && message.id !== undefined) {
    post({ id: message.id, result: {} });
  } else if (listeners.has(message.method)) {
    listeners.get(message.method)(message.params || {});
  }
});
async function begin(name) {
  const opened = await request("ui/initialize", {
    protocolVersion: "2026-01-26",
    appInfo: { name: "beamtalk-" + name, version: "1" },
    appCapabilities: {},
  });
  dress(opened.hostContext);
  post({ method: "ui/notifications/initialized", params: {} });
  resized();
}
