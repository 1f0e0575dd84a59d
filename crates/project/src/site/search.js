
(function () {
  var entries = JSON.parse(document.getElementById("entries").textContent);
  var input = document.getElementById("q");
  var found = document.getElementById("found");
  var all = document.getElementById("all");
  function show() {
    var words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    all.hidden = words.length > 0;
    found.hidden = words.length === 0;
    found.textContent = "";
    if (words.length === 0) return;
    var hits = entries.filter(function (entry) {
      var text = (entry.name + " " + entry.about).toLowerCase();
      return words.every(function (word) { return text.indexOf(word) >= 0; });
    });
    hits.sort(function (a, b) { return rank(a, words) - rank(b, words); });
    hits.slice(0, 200).forEach(function (entry) {
      var item = document.createElement("li");
      var link = document.createElement("a");
      link.href = entry.page;
      link.textContent = entry.name;
      item.appendChild(link);
      if (entry.about) item.appendChild(document.createTextNode(" — " + entry.about));
      found.appendChild(item);
    });
    if (hits.length === 0) found.appendChild(document.createElement("li")).textContent = "Nothing found.";
  }
  function rank(entry, words) {
    var name = entry.name.toLowerCase();
    if (name === words.join(" ")) return 0;
    return words.every(function (word) { return name.indexOf(word) >= 0; }) ? 1 + name.length / 1000 : 3;
  }
  input.form.addEventListener("submit", function (event) { event.preventDefault(); });
  input.addEventListener("input", show);
  input.value = new URLSearchParams(location.search).get("q") || "";
  show();
})();
