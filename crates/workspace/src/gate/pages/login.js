// Log in with the one-time token of a link such as /#login=TOKEN. A fragment is never sent to a
// server, so it is posted here, after it was taken out of the address bar and the history.
const token = new URLSearchParams(location.hash.slice(1)).get("login");
if (token !== null) {
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
