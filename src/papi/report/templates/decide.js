// Decide the doubtful: one image at a time, choices kept in this browser, a csv at the end. Needs no server.
"use strict";
(() => {
  const { key, classes, items } = JSON.parse(document.getElementById("desk-state").textContent);
  const part = (name) => document.getElementById(`desk-${name}`);
  const desk = document.getElementById("desk");
  const film = [...document.querySelectorAll("#film button")];
  const KEYS = 9;

  // Decisions by row of the training image, in the order they were made: the last is what "undo" takes back.
  let decisions = new Map();
  let place = 0;
  let inView = false;

  const load = () => {
    try {
      const known = new Map(items.map((item) => [item.index, item]));
      const kept = JSON.parse(localStorage.getItem(key) || "[]");
      decisions = new Map(kept.filter(([index, k]) => known.get(index)?.candidates.includes(k)));
    } catch {
      part("storage").hidden = false;
    }
  };
  const keep = () => {
    try {
      localStorage.setItem(key, JSON.stringify([...decisions]));
    } catch {
      part("storage").hidden = false;
    }
  };

  const element = (tag, properties, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const percent = (share) => `${Math.round(100 * share)}%`;

  const option = (k, share, number, chosen) => {
    const name = element("bdi", { textContent: classes[k] });
    const hint = number <= KEYS ? [element("kbd", { textContent: number, ariaHidden: "true" })] : [element("span", {})];
    const button = element("button", { type: "button", className: "option" }, ...hint, name,
      element("span", { className: "bar-share", textContent: percent(share) }));
    button.dataset.choice = k;
    button.setAttribute("aria-pressed", String(chosen === k));
    button.addEventListener("click", () => decide(k));
    return button;
  };

  const show = () => {
    const item = items[place];
    const chosen = decisions.get(item.index);
    const picture = part("picture");
    const source = film[place].querySelector("img");
    const where = item.file ? `Image ${item.index}: ${item.file}` : `Image ${item.index}`;
    if (source) {
      picture.src = source.src;
      picture.alt = where;
    } else {
      picture.textContent = where;
    }
    part("caption").replaceChildren(element("bdi", { textContent: where }));
    part("buttons").replaceChildren(
      ...item.candidates.map((k, number) => option(k, item.shares[number], number + 1, chosen)));
    part("status").textContent =
      `Image ${place + 1} of ${items.length}. ${decisions.size} decided.` + (chosen === undefined ? "" : ` Yours: ${classes[chosen]}.`);
    part("back").disabled = place === 0;
    part("next").disabled = place === items.length - 1;
    part("undo").disabled = part("download").disabled = decisions.size === 0;
    part("progress").value = decisions.size;
    film.forEach((button, number) => {
      button.setAttribute("aria-current", String(number === place));
      button.classList.toggle("decided", decisions.has(items[number].index));
    });
  };
  const go = (to) => {
    place = Math.min(items.length - 1, Math.max(0, to));
    show();
  };

  // Buttons are made anew for each image: a focus that was on one of them goes to the box, not to nowhere.
  const holdingFocus = (act) => {
    const inside = part("buttons").contains(document.activeElement);
    act();
    if (inside) desk.focus({ preventScroll: true });
  };
  const decide = (k) => holdingFocus(() => {
    const { index } = items[place];
    if (decisions.get(index) === k) {
      decisions.delete(index);
      keep();
      show();
      return;
    }
    decisions.delete(index);
    decisions.set(index, k);
    keep();
    const after = [...items.keys()].map((step) => (place + 1 + step) % items.length);
    go(after.find((number) => !decisions.has(items[number].index)) ?? place);
  });
  const undo = () => holdingFocus(() => {
    const last = [...decisions.keys()].pop();
    if (last === undefined) return;
    decisions.delete(last);
    keep();
    go(items.findIndex((item) => item.index === last));
  });

  // A spreadsheet would compute these.
  const text = (value) => (/^[=+\-@\t\r\n＝＋－＠]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value);
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const csv = () => {
    const decided = items.filter((item) => decisions.has(item.index));
    const lines = decided.map((item) => [String(item.index), item.file, classes[decisions.get(item.index)]]);
    return [["index", "file", "label"], ...lines]
      .map((line) => line.map((value) => quoted(text(value))).join(",") + "\r\n")
      .join("");
  };
  const download = () => {
    const address = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
    element("a", { href: address, download: "decisions.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };

  const press = (event) => {
    const elsewhere = event.target !== document.body && !desk.contains(event.target) && !film.includes(event.target);
    if (!part("keys").checked || !inView || elsewhere || event.ctrlKey || event.metaKey || event.altKey) return;
    const number = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
    if (number && number <= items[place].candidates.length) decide(items[place].candidates[number - 1]);
    else if (event.key === "ArrowLeft") holdingFocus(() => go(place - 1));
    else if (event.key === "ArrowRight") holdingFocus(() => go(place + 1));
    else if (event.key === "u") undo();
    else return;
    event.preventDefault();
  };

  load();
  desk.hidden = part("progress").hidden = false;
  desk.tabIndex = -1;
  part("back").addEventListener("click", () => go(place - 1));
  part("next").addEventListener("click", () => go(place + 1));
  part("undo").addEventListener("click", undo);
  part("download").addEventListener("click", download);
  film.forEach((button, number) => button.addEventListener("click", () => go(number)));
  document.addEventListener("keydown", press);
  // Keys count only while the box can be seen, so that nothing is decided out of sight.
  new IntersectionObserver((seen) => { inView = seen[seen.length - 1].isIntersecting; }).observe(desk);
  const undecided = items.findIndex((item) => !decisions.has(item.index));
  go(undecided < 0 ? 0 : undecided);
})();
