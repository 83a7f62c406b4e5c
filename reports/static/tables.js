"use strict";
// Language and colours of the pages about several reports. The first lines run before the page is painted.
(() => {
  const root = document.documentElement;
  const asked = new URLSearchParams(location.search);
  const speak = (language) => {
    root.lang = language === "fa" ? "fa" : "en";
    root.dir = root.lang === "fa" ? "rtl" : "ltr";
  };
  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  speak(asked.get("lang") || ((navigator.language || "").startsWith("fa") ? "fa" : "en"));
  if (["dark", "light"].includes(asked.get("theme"))) root.dataset.theme = asked.get("theme");
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("language").addEventListener("click", () => speak(root.lang === "fa" ? "en" : "fa"));
    document.getElementById("theme").addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
    });
  });
})();
