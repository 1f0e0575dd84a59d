// The first script of the page: the nonce before any library, then the login of a link, then the workspace.

import "./kernel/nonce";
import "./style.css";

/** Posts the one-time token of `/#login=…`, after it was taken out of the address and the history. */
function logIn(token: string): void {
  history.replaceState(null, "", "/");
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/login";
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = "token";
  field.value = token;
  form.append(field);
  document.body.append(form);
  form.submit();
}

const token = new URLSearchParams(location.hash.slice(1)).get("login");
if (token === null) void import("./app");
else logIn(token);
