"use strict";
// Shows, hides and copies; draws nothing. The first lines run before the page is painted.
(() => {
  const texts = /* TEXTS */ {}; // by language and key: what the locale files say
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

  // The page is written in English; what has a text of its own in the other language is replaced.
  function translate(within = document) {
    const own = texts[root.lang];
    for (const element of all("[data-t]", within)) {
      const text = own[element.dataset.t] + (element.dataset.more || "");
      if (element.textContent !== text) element.textContent = text;
    }
    for (const element of all("[data-l10n]", within)) {
      for (const pair of element.dataset.l10n.split(" ")) {
        const [name, key] = pair.split("=");
        element.setAttribute(name, own[key]);
      }
    }
    document.title = own.title + " · Lockstep";
  }

  // What the page carries compressed: a list of texts, one for each row of the matrix.
  async function unpack(id) {
    const bytes = Uint8Array.from(atob(document.getElementById(id).content.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }
  let cards = null;
  const card = async (number) => (await (cards ??= unpack("cards")))[number];

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

  function addCopying(within) {
    const model = document.getElementById("copying").content;
    for (const command of all(".command:not(:has(.copy))", within)) {
      command.append(model.cloneNode(true));
      const button = command.querySelector(".copy");
      const [idle, done] = button.querySelectorAll("span");
      button.addEventListener("click", async () => {
        await copy(command.querySelector("code").textContent);
        idle.hidden = true;
        done.hidden = false;
        setTimeout(() => {
          idle.hidden = false;
          done.hidden = true;
        }, 1600);
      });
    }
  }

  function start() {
    const by = (id) => document.getElementById(id);
    const rows = all(".row").map((row, number) => ({
      number,
      row,
      card: row.nextElementSibling,
      button: row.querySelector(".open"),
      section: row.parentElement,
      text: plain(row.textContent), // and soon what its card says
      drawn: false,
      truth: row.dataset.truth,
      cells: all(".cell", row).map((cell) => ({
        impl: cell.dataset.impl,
        changed: cell.dataset.changed === "1",
        chips: all(".chip", cell).map((chip) => ({ chip, tier: chip.dataset.tier, verdicts: chip.dataset.verdicts.split(" ") })),
      })),
    }));
    const picks = all(".pick[data-verdict]");
    const changed = by("changed");
    const fields = { q: by("search"), section: by("section"), impl: by("impl"), tier: by("tier"), truth: by("truth") };
    const isPressed = (button) => button !== null && button.getAttribute("aria-pressed") === "true";
    const press = (button, on) => button.setAttribute("aria-pressed", String(on));

    // What is asked for, by the names that the address has for it.
    function chosen() {
      const found = Object.entries(fields).filter(([, field]) => field !== null && field.value !== "").map(([key, field]) => [key, field.value]);
      const verdicts = picks.filter(isPressed).map((pick) => pick.dataset.verdict);
      if (verdicts.length > 0) found.push(["verdict", verdicts.join(",")]);
      if (isPressed(changed)) found.push(["changed", "1"]);
      return new URLSearchParams(found);
    }

    function choose(wanted) {
      for (const [key, field] of Object.entries(fields)) {
        if (field === null) continue;
        field.value = wanted.get(key) || "";
        if (field.selectedIndex === -1) field.value = ""; // an address of another report
      }
      const verdicts = (wanted.get("verdict") || "").split(",");
      for (const pick of picks) press(pick, verdicts.includes(pick.dataset.verdict));
      if (changed !== null) press(changed, wanted.get("changed") === "1");
    }

    function keepInAddress(found) {
      const query = new URLSearchParams([...["lang", "theme"].filter((key) => asked.has(key)).map((key) => [key, asked.get(key)]), ...found]);
      const text = query.toString();
      try { history.replaceState(null, "", (text ? "?" + text : location.pathname) + location.hash); } catch { /* kept by the page alone */ }
    }

    function filter() {
      const found = chosen();
      const words = plain(fields.q.value).split(/\s+/).filter(Boolean);
      const verdicts = (found.get("verdict") || "").split(",").filter(Boolean);
      const [section, impl, tier, truth] = ["section", "impl", "tier", "truth"].map((key) => found.get(key));
      const active = found.size > 0;
      const shownIn = new Set();
      let shown = 0;
      for (const entry of rows) {
        let inCell = false;
        for (const cell of entry.cells) {
          const here = (!impl || cell.impl === impl || cell.impl === "suite") && (!isPressed(changed) || cell.changed);
          for (const { chip, tier: own, verdicts: named } of cell.chips) {
            const inTier = here && (!tier || own === tier);
            chip.classList.toggle("aside", active && !inTier);
            inCell ||= inTier && (verdicts.length === 0 || named.some((verdict) => verdicts.includes(verdict)));
          }
        }
        const fits =
          inCell && (!section || entry.section.dataset.section === section) && (!truth || entry.truth === truth) &&
          words.every((word) => entry.text.includes(word));
        entry.row.hidden = !fits;
        entry.card.hidden = !fits || entry.button.getAttribute("aria-expanded") !== "true";
        if (fits) {
          shown += 1;
          shownIn.add(entry.section);
        }
      }
      for (const body of all("tbody.section")) {
        body.hidden = active && !shownIn.has(body);
        body.classList.toggle("searched", active);
      }
      const status = by("shown");
      status.textContent = texts[root.lang].showing
        .replace("{shown}", digits(shown)).replace("{total}", digits(Number(status.dataset.total)));
      by("nothing").hidden = shown > 0;
      by("clear").hidden = !active;
      keepInAddress(found);
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

    async function draw(entry) {
      if (entry.drawn) return;
      entry.drawn = true;
      const drawn = new DOMParser().parseFromString(await card(entry.number), "text/html");
      entry.card.firstElementChild.replaceChildren(...drawn.body.childNodes);
      addCopying(entry.card);
      translate(entry.card);
    }

    function show(entry, open) {
      entry.button.setAttribute("aria-expanded", String(open));
      entry.card.hidden = !open;
      entry.row.classList.toggle("opened", open);
      if (!open) return;
      draw(entry);
      unfold(entry.section, true);
      if (entry.row.classList.contains("later")) showLater(entry.section, true);
    }

    // A link to a claim opens its card, also when a filter hides it.
    function follow() {
      let id = location.hash.slice(1);
      try { id = decodeURIComponent(id); } catch { /* a broken address leads nowhere */ }
      const story = document.getElementById(id);
      if (story !== null && story.matches("details.story")) story.open = true;
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
    for (const pick of all(".pick")) {
      pick.addEventListener("click", () => {
        press(pick, !isPressed(pick));
        filter();
      });
    }
    for (const link of all("[data-filter]")) {
      link.addEventListener("click", () => {
        choose(new URLSearchParams(link.dataset.filter));
        filter();
      });
    }
    const form = document.querySelector(".filters");
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => {
      for (const pick of all(".pick")) press(pick, false);
      setTimeout(filter);
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.closest("input, select, textarea");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        fields.q.focus();
      }
    });
    addEventListener("hashchange", follow);

    by("theme").addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      store.set("theme", root.dataset.theme);
      if (asked.has("theme")) asked.set("theme", root.dataset.theme);
      keepInAddress(chosen());
    });
    by("language").addEventListener("click", () => {
      root.lang = root.lang === "fa" ? "en" : "fa";
      root.dir = root.lang === "fa" ? "rtl" : "ltr";
      store.set("lang", root.lang);
      if (asked.has("lang")) asked.set("lang", root.lang);
      translate();
      filter();
    });

    addCopying(document);
    translate();
    choose(asked);
    filter();
    follow();
    unpack("searched").then((found) => {
      rows.forEach((entry, number) => { entry.text += " " + plain(found[number]); });
      if (fields.q.value !== "") filter();
    });
    // The browser itself goes to the card once all is loaded; its row belongs in sight, too.
    addEventListener("load", () => requestAnimationFrame(follow));
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
