"use strict";
// Shows, hides and copies; draws nothing. The first lines run before the page is painted.
(() => {
  const root = document.documentElement;
  const asked = new URLSearchParams(location.search);

  // A page opened from a file may have no storage; choices then last as long as the page.
  const store = {
    get(key) { try { return localStorage.getItem("lockstep." + key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem("lockstep." + key, value); } catch { /* not kept */ } },
  };

  const theme = asked.get("theme") || store.get("theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  const preferred = (navigator.language || "").startsWith("fa") ? "fa" : "en";
  const language = asked.get("lang") || store.get("lang") || preferred;
  root.lang = language === "fa" ? "fa" : "en";
  root.dir = root.lang === "fa" ? "rtl" : "ltr";

  const isDark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const digits = (number) => number.toLocaleString(root.lang === "fa" ? "fa-IR" : "en-US");
  // One spelling for what Persian keyboards write in two ways, and no joiners.
  const plain = (text) => text.toLowerCase().replace(/\u200c/g, "").replace(/\u064a/g, "\u06cc").replace(/\u0643/g, "\u06a9");

  function translate() {
    document.title = root.lang === "fa" ? root.dataset.titleFa : root.dataset.titleEn;
    for (const element of all("[data-l10n]")) {
      const text = element.dataset[root.lang];
      for (const target of element.dataset.l10n.split(" ")) {
        if (target === "text") element.textContent = text;
        else element.setAttribute(target, text);
      }
    }
  }

  function start() {
    const by = (id) => document.getElementById(id);
    const rows = all(".row").map((row) => ({
      row,
      card: row.nextElementSibling,
      button: row.querySelector(".open"),
      section: row.parentElement,
      text: plain(row.dataset.search),
      truth: row.dataset.truth,
      chips: all(".chip", row),
    }));
    const picks = all(".pick");
    const fields = { search: by("search"), section: by("section"), tier: by("tier"), truth: by("truth") };

    function filter() {
      const words = plain(fields.search.value).split(/\s+/).filter(Boolean);
      const verdicts = new Set(picks.filter((p) => p.getAttribute("aria-pressed") === "true").map((p) => p.dataset.verdict));
      const active = words.length > 0 || verdicts.size > 0 || fields.section.value !== "" || fields.tier.value !== "" || fields.truth.value !== "";
      const shownIn = new Map();
      let shown = 0;
      for (const entry of rows) {
        const inTier = entry.chips.filter((chip) => !fields.tier.value || chip.dataset.tier === fields.tier.value);
        const fits =
          (!fields.section.value || entry.section.dataset.section === fields.section.value) &&
          (!fields.truth.value || entry.truth === fields.truth.value) &&
          (!fields.tier.value || inTier.length > 0) &&
          (verdicts.size === 0 || inTier.some((chip) => chip.dataset.verdicts.split(" ").some((verdict) => verdicts.has(verdict)))) &&
          words.every((word) => entry.text.includes(word));
        entry.row.hidden = !fits;
        entry.card.hidden = !fits || entry.button.getAttribute("aria-expanded") !== "true";
        for (const chip of entry.chips) chip.classList.toggle("aside", !inTier.includes(chip));
        if (fits) {
          shown += 1;
          shownIn.set(entry.section, true);
        }
      }
      for (const section of all("tbody.section")) {
        section.hidden = active && !shownIn.has(section);
        section.classList.toggle("searched", active);
      }
      const status = by("shown");
      status.textContent = status.dataset[root.lang]
        .replace("{shown}", digits(shown)).replace("{total}", digits(Number(status.dataset.total)));
      by("nothing").hidden = shown > 0;
      by("clear").hidden = !active;
    }

    function unfold(section, open) {
      section.classList.toggle("folded", !open);
      section.querySelector(".fold").setAttribute("aria-expanded", String(open));
    }

    // What this run did not check lies behind one row of its section.
    function showLater(section, open) {
      section.classList.toggle("full", open);
      section.querySelector(".more").setAttribute("aria-expanded", String(open));
    }

    function show(entry, open) {
      entry.button.setAttribute("aria-expanded", String(open));
      entry.card.hidden = !open;
      entry.row.classList.toggle("opened", open);
      if (!open) return;
      unfold(entry.section, true);
      if (entry.row.classList.contains("later")) showLater(entry.section, true);
    }

    // A link to a claim opens its card, also when a filter hides it.
    function follow() {
      const id = decodeURIComponent(location.hash.slice(1));
      const entry = rows.find((candidate) => candidate.card.id === id);
      if (!entry) return;
      if (entry.row.hidden) document.querySelector(".filters").reset();
      show(entry, true);
      entry.row.scrollIntoView({ block: "start" });
      entry.button.focus({ preventScroll: true });
    }

    for (const entry of rows) {
      entry.button.addEventListener("click", () => show(entry, entry.button.getAttribute("aria-expanded") !== "true"));
      entry.card.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        show(entry, false);
        entry.button.focus();
      });
    }
    for (const button of all(".fold")) {
      button.addEventListener("click", () => {
        const section = button.closest("tbody");
        unfold(section, section.classList.contains("folded"));
      });
    }
    for (const button of all(".more")) {
      button.addEventListener("click", () => {
        const section = button.closest("tbody");
        showLater(section, !section.classList.contains("full"));
      });
    }
    for (const pick of picks) {
      pick.addEventListener("click", () => {
        pick.setAttribute("aria-pressed", String(pick.getAttribute("aria-pressed") !== "true"));
        filter();
      });
    }
    const form = document.querySelector(".filters");
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => {
      for (const pick of picks) pick.setAttribute("aria-pressed", "false");
      setTimeout(filter);
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, select, textarea");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        fields.search.focus();
      }
    });
    addEventListener("hashchange", follow);

    by("theme").addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      store.set("theme", root.dataset.theme);
    });
    by("language").addEventListener("click", () => {
      root.lang = root.lang === "fa" ? "en" : "fa";
      root.dir = root.lang === "fa" ? "rtl" : "ltr";
      store.set("lang", root.lang);
      translate();
      filter();
    });

    async function copy(text) {
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
    }
    for (const button of all(".copy")) {
      button.addEventListener("click", async () => {
        await copy(button.previousElementSibling.textContent);
        button.querySelector(".idle-word").hidden = true;
        button.querySelector(".done-word").hidden = false;
        setTimeout(() => {
          button.querySelector(".idle-word").hidden = false;
          button.querySelector(".done-word").hidden = true;
        }, 1600);
      });
    }

    translate();
    filter();
    follow();
    // The browser itself goes to the card once all is loaded; its row belongs in sight, too.
    addEventListener("load", () => requestAnimationFrame(follow));
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
