// Before the first paint: the colours that the visitor chose. Without a choice the system's hold.
"use strict";
(() => {
  const order = ["system", "light", "dark"];
  const chosen = () => {
    try { return order.includes(localStorage.theme) ? localStorage.theme : "system"; } catch { return "system"; }
  };
  const apply = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  apply(chosen());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = (theme) => {
      button.textContent = { system: "◐", light: "☀", dark: "☾" }[theme];
      const said = `Theme: ${theme}`;
      button.setAttribute("aria-label", said);
      button.title = said;
    };
    show(chosen());
    button.addEventListener("click", () => {
      const next = order[(order.indexOf(chosen()) + 1) % order.length];
      try { localStorage.theme = next; } catch { /* private windows may forbid it: the choice holds for this page */ }
      apply(next);
      show(next);
      document.dispatchEvent(new Event("themechange"));
    });
  });
})();
