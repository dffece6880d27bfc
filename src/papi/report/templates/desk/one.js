// One image at a time: its photo, its candidates, and the other answers.
const KEYS = 9, SHOWN = 12, FILM = 14;
const all = queue().map((place) => items[place]);
let list = all, at = 0;
let several = null;  // the labels chosen so far, while several are being selected
let open = false;  // whether the image was undecided when it was shown

const current = () => list[at];
const holdingFocus = (act) => {  // buttons are replaced: keep the focus inside the box
  const inside = part("buttons").contains(document.activeElement) || part("found").contains(document.activeElement);
  act();
  if (inside) part("one").focus({ preventScroll: true });
};

const option = (item, k, number) => {
  const answer = decisions.get(item.index);
  const chosen = several ? several.has(k) : Boolean(answer?.labels.includes(k));
  const rank = item.candidates.indexOf(k), share = item.shares[rank];
  const who = (item.opinions ?? []).filter((each) => each.label === k).map((each) => `${each.run} ${each.share}%`);
  const button = element("button", { type: "button", className: "option" },
    element("kbd", { textContent: number <= KEYS ? number : "", ariaHidden: "true" }),
    element("bdi", { textContent: classes[k] }),
    element("span", { className: "bar-share", textContent: who.join(", ") || (share === undefined ? "" : `${share}%`) }));
  button.style.setProperty("--share", `${who.length ? 0 : share ?? 0}%`);
  button.dataset.choice = k;
  button.setAttribute("aria-pressed", String(chosen));
  button.addEventListener("click", () => choose(k));
  return button;
};

const showFound = () => {
  const sought = part("other").value.trim().toLowerCase();
  const item = current();
  const names = classes.map((name, k) => [name, k]).filter(([name]) => name.toLowerCase().includes(sought));
  names.sort(([a], [b]) => b.toLowerCase().startsWith(sought) - a.toLowerCase().startsWith(sought) || a.localeCompare(b));
  part("found").replaceChildren(...(sought && item ? names.slice(0, 6).map(([, k]) => option(item, k, KEYS + 1)) : []));
};

const showFilm = () => {
  const first = Math.max(0, Math.min(at - 3, list.length - FILM));
  part("film").replaceChildren(...list.slice(first, first + FILM).map((item, step) => {
    const button = element("button", { type: "button", ariaLabel: named(item) }, tile(item));
    button.classList.toggle("decided", decisions.has(item.index));
    button.setAttribute("aria-current", String(first + step === at));
    button.addEventListener("click", () => holdingFocus(() => go(first + step)));
    return element("li", {}, button);
  }));
};

const said = ({ kind, labels }) =>
  ({ none: "none of these", bad: "bad image", skip: "skipped" })[kind] ?? labels.map((k) => classes[k]).join(" or ");

const showOne = () => {
  const item = current();
  part("one").hidden = !item;
  part("nothing").hidden = Boolean(item);
  if (!item) {
    part("film").replaceChildren();
    part("status").textContent = "No image matches this filter.";
    return;
  }
  const answer = decisions.get(item.index);
  open = !answer;
  if (wanted !== item) showPicture(item);
  part("caption").replaceChildren(element("bdi", { textContent: item.file || `Image ${item.index}` }));
  part("buttons").replaceChildren(...item.candidates.slice(0, SHOWN).map((k, number) => option(item, k, number + 1)));
  part("buttons").classList.toggle("two", item.candidates.length > 5);
  showFound();
  part("status").textContent = `Image ${counted(at + 1)} of ${counted(list.length)}.${answer ? ` Your decision: ${said(answer)}.` : ""}`;
  part("question").textContent = several ? "Which labels are possible?" : "Which label is right?";
  part("several").setAttribute("aria-pressed", String(Boolean(several)));
  part("several").textContent = several ? `Keep these ${several.size}` : "Several are possible";
  part("several").disabled = Boolean(several) && several.size < 2;
  for (const kind of ["none", "bad", "skip"]) part(kind).setAttribute("aria-pressed", String(answer?.kind === kind));
  part("none").hidden = item.candidates.length === classes.length;
  part("back").disabled = at === 0;
  part("next").disabled = at === list.length - 1;
  if (document.activeElement !== part("note")) part("note").value = answer?.note ?? (noteOf === item ? part("note").value : "");
  noteOf = item;
  showFilm();
};
let noteOf = null;

const go = (to) => {
  at = Math.max(0, Math.min(list.length - 1, to));
  several = null;
  part("other").value = "";
  showOne();
  fetchAhead(list[at + 1]);
};
const onwards = () => {
  for (let step = 1; step < list.length; step += 1) {
    const next = (at + step) % list.length;
    if (!decisions.has(list[next].index)) {
      go(next);
      return;
    }
  }
  go(at);
};

// If another tab decides on the current image, move on, so that a key press does not undo that decision.
elsewhere.push(() => {
  if (open && current() && decisions.has(current().index)) onwards();
});

const answerWith = (kind, labels = []) => holdingFocus(() => {
  const item = current();
  if (!item) return;
  const before = decisions.get(item.index);
  const note = part("note").value.trim();
  part("note").blur();
  if (before && before.kind === kind && String(before.labels) === String(labels) && before.note === note) {
    store.change([[item.index, null]]);  // the same answer again undoes the decision
    return;
  }
  decide([item], kind, labels, note);
  onwards();
});
const choose = (k) => {
  if (!several) {
    answerWith("label", [k]);
    return;
  }
  if (!several.delete(k)) several.add(k);
  holdingFocus(showOne);
};
const takeSeveral = () => {
  if (several && several.size > 1) answerWith("several", [...several].sort((a, b) => a - b));
  else {
    const answer = decisions.get(current()?.index);
    several = several ? null : new Set(answer?.kind === "several" ? answer.labels : []);
    holdingFocus(showOne);
  }
};
const noteDown = () => {
  const item = current(), answer = item && decisions.get(item.index);
  if (answer) store.change([[item.index, { ...answer, note: part("note").value.trim() }]]);
};
