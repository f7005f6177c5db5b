// Says whether the page is live. Everything else is HTML from the server and htmx.
(() => {
  const show = (state, text) => {
    const live = document.getElementById("live");
    if (!live || live.dataset.state === state) return;
    live.dataset.state = state;
    live.textContent = text;
  };
  const on = (name, handler) => document.addEventListener(name, handler);
  on("htmx:sse:after:connection", () => show("live", "Live"));
  on("htmx:sse:error", () => show("lost", "Reconnecting…"));
  // The first connection is a request of htmx; only later ones are repeated by hx-sse.
  for (const name of ["htmx:error", "htmx:response:error"]) {
    on(name, (event) => {
      if (event.target.id === "events") show("lost", "Not live: reload the page");
    });
  }
  on("htmx:sse:close", (event) => {
    if (event.detail.reason !== "removed") show("lost", "Not live: reload the page");
  });
})();
