// A link from an earlier start of the explorer leads to the same view now, if this browser has entered since.
let home = "";
try { home = localStorage.home ?? ""; } catch { /* private windows may forbid it */ }
const known = /^\/[\w-]+\/$/.test(home) && !location.pathname.startsWith(home); // another server may have had this port
if (known && !new URLSearchParams(location.search).has("token")) {
  location.replace(home + location.pathname.replace(/.*\//, "") + location.search + location.hash);
}
