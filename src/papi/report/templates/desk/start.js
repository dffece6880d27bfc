// Filters, progress, keys, and the start of the script.
const box = document.getElementById("desk");
const SURE = { "": [0, 101], low: [0, 50], middle: [50, 75], high: [75, 90], top: [90, 101] };

const fill = (select, first, counts, name) => {
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 300);
  select.replaceChildren(...(first ? [element("option", { value: "", textContent: first })] : []),
    ...most.map(([value, count]) => element("option", { value, textContent: `${name(value)} (${counted(count)})` })));
};
const count = (keys) => keys.reduce((counts, key) => counts.set(key, (counts.get(key) ?? 0) + 1), new Map());
const pairOf = (item) => item.candidates.slice(0, 2).sort((a, b) => a - b).join("+");

const filter = () => {
  const name = part("search").value.trim().toLowerCase(), [low, high] = SURE[part("sure").value];
  const [label, pair, which] = [part("class").value, part("pair").value, part("which").value];
  const annotator = part("annotator").value;
  list = all.filter((item) =>
    (!label || item.candidates[0] === Number(label)) && (!pair || pairOf(item) === pair) &&
    (item.shares[0] ?? 0) >= low && (item.shares[0] ?? 0) < high &&
    (!annotator || people.said[item.place].includes(Number(annotator))) &&
    (!name || item.file.toLowerCase().includes(name) || String(item.index) === name) &&
    (!which || decisions.has(item.index) === (which === "decided")));
  part("return").hidden = true;
  const undecided = list.findIndex((item) => !decisions.has(item.index));
  if (grid) showGrid();
  go(Math.max(0, undecided));
};

const setMode = (many) => {
  grid = many;
  part("mode-one").setAttribute("aria-pressed", String(!many));
  part("mode-grid").setAttribute("aria-pressed", String(many));
  part("single").hidden = many;
  part("many").hidden = !many;
  if (many) {
    part("return").hidden = true;
    if (list.length && !all.includes(list[0])) list = all;
    if (part("class").value) part("grid-class").value = part("class").value;
    showGrid();
  }
};

const verdict = (decided) => state.runs
  .map((run, n) => `${run} is right on ${counted(decided.filter((item) => decisions.get(item.index).labels.includes(item.opinions[n].label)).length)}`)
  .join(", ");
let before = null;  // the estimate before the last decision
const showProgress = () => {
  const known = items.filter((item) => decisions.has(item.index));
  const decided = known.filter(isDecided), wrong = decided.filter(isWrong).length, now = estimate();
  const skipped = known.length - decided.length;
  part("count").textContent = `${counted(known.length)} decided` + (skipped ? `, ${counted(skipped)} of them skipped` : "");
  part("corrected").textContent = !decided.length ? "" : state.opinions ? verdict(decided) : `${counted(wrong)} ${wrong === 1 ? "label was" : "labels were"} wrong`;
  part("progress").value = known.length;
  const waiting = served ? remote.waiting().length : 0;
  part("saved").textContent = waiting ? `${counted(waiting)} not saved yet` : "";
  if (!now) {
    part("estimate").textContent = starts.length && decisions.size
      ? "Decide some more images in the order offered to estimate how many labels are still wrong." : "";
  } else {
    const was = before && Math.round(before.wrong) !== Math.round(now.wrong) ? ` Before your last decision: ${counted(Math.round(before.wrong))}.` : "";
    part("estimate").textContent = now.high === 0 ? "All doubtful images are decided."
      : `About ${counted(Math.round(now.wrong))} labels are still wrong (90% interval: ${counted(now.low)} to ${counted(now.high)}).${was}`;
  }
  before = now;
  part("undo").disabled = part("download").disabled = decisions.size === 0;
};
listeners.push(showProgress, () => { if (grid) showGrid(); else showOne(); });

const download = () => {
  const address = URL.createObjectURL(new Blob([csv()], { type: "text/csv;charset=utf-8" }));
  element("a", { href: address, download: "decisions.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
};
const undoLast = () => holdingFocus(() => {
  const index = undo();
  if (index === null || grid) return;
  if (!list.some((item) => item.index === index)) list = all;
  const place = list.findIndex((item) => item.index === index);
  if (place >= 0) go(place);
});

let inView = false;
const KEYS_ALONE = {
  ArrowLeft: () => (grid ? moveFocus(-1) : holdingFocus(() => go(at - 1))),
  ArrowRight: () => (grid ? moveFocus(1) : holdingFocus(() => go(at + 1))),
  ArrowUp: () => grid && moveFocus(-columns()),
  ArrowDown: () => grid && moveFocus(columns()),
  u: undoLast,
  z: () => grid || zoom(),
  m: () => grid || takeSeveral(),
  n: () => grid || part("none").hidden || answerWith("none"),
  b: () => grid || answerWith("bad"),
  s: () => grid || answerWith("skip"),
  o: () => grid || part("other").focus(),
  "/": () => part("search").focus(),
  g: () => setMode(!grid),
  c: () => grid && confirm(),
};
const press = (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
  const elsewhere = event.target !== document.body && !box.contains(event.target) && !dialog.contains(event.target);
  if (typing && event.key === "Escape") event.target.blur();
  if (typing || elsewhere || !part("keys").checked || !inView || event.ctrlKey || event.metaKey || event.altKey) return;
  if (dialog.open && event.key !== "z") return;
  const number = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
  if (number && !grid && current() && number <= Math.min(SHOWN, current().candidates.length)) choose(current().candidates[number - 1]);
  else if (event.key === "Enter" && several && event.target.tagName !== "BUTTON") takeSeveral();
  else if (event.key === "Escape" && several) takeSeveral();
  else if (!Object.hasOwn(KEYS_ALONE, event.key) || KEYS_ALONE[event.key]() === false) return;
  event.preventDefault();
};

if (state.opinions) state.opinions.forEach((pair, place) => { items[place].opinions = pair; });
store.start();
box.hidden = false;
fill(part("class"), "Any label", count(items.map((item) => item.candidates[0])), (k) => classes[k]);
fill(part("pair"), "Any pair of labels", count(items.filter((item) => item.candidates.length > 1).map(pairOf)),
  (pair) => pair.split("+").map((k) => classes[k]).join(" or "));
fill(part("grid-class"), "", count(items.map((item) => item.candidates[0])), (k) => classes[k]);
const people = state.annotators ?? { names: [], said: [] };
fill(part("annotator"), "Anyone", count(people.said.flat()), (person) => people.names[person]);
part("annotator").closest("label").hidden = !people.names.length;
part("sure").closest("label").hidden = Boolean(state.opinions);
part("search").closest("label").hidden = !items.some((item) => item.file);

const clicks = {
  back: () => go(at - 1), next: () => go(at + 1), undo: undoLast, download, none: () => answerWith("none"),
  bad: () => answerWith("bad"), skip: () => answerWith("skip"), several: takeSeveral, confirm,
  "mode-one": () => setMode(false), "mode-grid": () => setMode(true),
  return: () => { list = all; setMode(true); },
};
for (const [name, act] of Object.entries(clicks)) part(name).addEventListener("click", act);
for (const name of ["class", "pair", "annotator", "sure", "which"]) part(name).addEventListener("change", filter);
part("search").addEventListener("input", filter);
part("grid-class").addEventListener("change", () => { marked = new Set(); showGrid(); });
part("other").addEventListener("input", showFound);
part("other").addEventListener("keydown", (event) => {
  const first = part("found").querySelector("button");
  if (event.key !== "Enter" || !first) return;
  part("one").focus({ preventScroll: true });
  choose(Number(first.dataset.choice));
});
part("note").addEventListener("change", noteDown);
document.addEventListener("keydown", press);
// Keys work only while the box is visible, so that nothing is decided by accident.
new IntersectionObserver((seen) => { inView = seen[seen.length - 1].isIntersecting; }).observe(box);
setMode(false);
showProgress();
go(Math.max(0, list.findIndex((item) => !decisions.has(item.index))));
